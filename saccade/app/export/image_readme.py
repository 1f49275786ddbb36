"""What lies in an exported folder of a classifier, for those who find it without us."""

from saccade.printable import printable

_ONE = "scores.softmax(-1)"
_SEVERAL = "scores.sigmoid()"
_PIXELS = """For the same pixels the scores are those of Saccade. An image is resized and cut in two
steps here, in one there: what is shown may lie half a pixel beside."""


def _about(name: str, several: bool) -> str:
    found = "Each class has a probability of its own." if several else ""
    return (
        f"An image classifier trained by Saccade (`{printable(name)}`). {found}\n"
        "`saccade.json` says which run it was made of, `classes.json` has the names of the classes."
    )


def huggingface_readme(name: str, *, several: bool, remarks: list[str]) -> str:
    """How transformers load it."""
    told = "\n".join(remarks)
    return f"""---
library_name: transformers
pipeline_tag: image-classification
---
# {printable(name)} for Hugging Face's transformers

{_about(name, several)}

```python
import torch
from PIL import Image
from transformers import AutoImageProcessor, AutoModelForImageClassification

model = AutoModelForImageClassification.from_pretrained(".")
processor = AutoImageProcessor.from_pretrained(".")
with torch.no_grad():
    scores = model(**processor(Image.open("photo.jpg"), return_tensors="pt")).logits
probabilities = {_SEVERAL if several else _ONE}
print(model.config.id2label[int(probabilities[0].argmax())])
```

{_PIXELS} {told}
"""


def timm_readme(name: str, *, several: bool) -> str:
    """How timm loads it."""
    return f"""---
library_name: timm
pipeline_tag: image-classification
---
# {printable(name)} for timm

{_about(name, several)}

```python
import timm
import torch
from PIL import Image

model = timm.create_model("local-dir:.", pretrained=True).eval()
read = timm.data.create_transform(**timm.data.resolve_model_data_config(model))
with torch.no_grad():
    scores = model(read(Image.open("photo.jpg").convert("RGB"))[None])
probabilities = {_SEVERAL if several else _ONE}
print(model.pretrained_cfg["label_names"][int(probabilities[0].argmax())])
```

{_PIXELS}
"""


def onnx_readme(name: str, side: int, *, several: bool) -> str:
    """What goes into the graph and what comes out."""
    then = "a sigmoid of each gives" if several else "a softmax over them gives"
    return f"""# {printable(name)} as ONNX

{_about(name, several)}

`classifier.onnx` takes `images` (rows × 3 × {side} × {side}, uint8: red, green and blue from 0 to
255, the middle of an image resized to that size) and gives `scores` (rows × classes); {then}
probabilities. All else, such as mean and deviation, is in the graph.
"""


def detector_readme(name: str, side: int) -> str:
    """How transformers load it, and what an image is squeezed to."""
    return f"""---
library_name: transformers
pipeline_tag: object-detection
---
# {printable(name)} for Hugging Face's transformers

A DETR trained by Saccade (`{printable(name)}`).
`saccade.json` says which run it was made of, `classes.json` has the names of the classes.

```python
import torch
from PIL import Image
from transformers import AutoImageProcessor, AutoModelForObjectDetection

model = AutoModelForObjectDetection.from_pretrained(".")
processor = AutoImageProcessor.from_pretrained(".")
image = Image.open("photo.jpg").convert("RGB")
with torch.no_grad():
    found = model(**processor(image, return_tensors="pt"))
size = [(image.height, image.width)]
(best,) = processor.post_process_object_detection(found, threshold=0.5, target_sizes=size)
for label, score, box in zip(best["labels"], best["scores"], best["boxes"]):
    print(model.config.id2label[int(label)], round(float(score), 3), box.tolist())
```

An image is squeezed to {side} × {side} pixels, as those were that it learnt from. For the same
pixels the scores and boxes are those of Saccade. To train it on there, leave `auxiliary_loss` off:
with it, transformers 5 hand normalised states from layer to layer, which this model never saw.
"""
