"""Small data sets of images with classes, in the forms of others."""

import io
import json
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

NAMES = ("cat", "dog")


def table(**columns: Sequence[object]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({key: list(column) for key, column in columns.items()}), sink)
    return sink.getvalue()


def featured(images: Sequence[bytes | None], labels: Sequence[object]) -> pa.Table:
    """A table as `datasets` has it: labels are numbers, and their names lie in the metadata."""
    stored = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    cells = [raw and {"bytes": raw, "path": None} for raw in images]
    cells = [{"bytes": b"", "path": None} if raw == b"" else raw for raw in cells]
    features = {
        "image": {"_type": "Image"},
        "label": {"names": list(NAMES), "_type": "ClassLabel"},
    }
    about = {"huggingface": json.dumps({"info": {"features": features}})}
    found = pa.table({"image": pa.array(cells, stored), "label": list(labels)})
    return found.replace_schema_metadata(about)


def hugging_face(images: Sequence[bytes | None], labels: Sequence[object]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(featured(images, labels), sink, row_group_size=2)
    return sink.getvalue()


def saved_to_disk(images: Sequence[bytes | None], labels: Sequence[object]) -> dict[str, bytes]:
    """The files that `save_to_disk` writes."""
    sink = io.BytesIO()
    found = featured(images, labels)
    with pa.ipc.new_stream(sink, found.schema) as stream:
        stream.write_table(found, max_chunksize=2)
    state = {"_data_files": [{"filename": "data.arrow"}], "_split": None}
    return {
        "data.arrow": sink.getvalue(),
        "state.json": json.dumps(state).encode(),
        "dataset_info.json": b"{}",
    }


def instances(labels: Mapping[str, Sequence[str]]) -> bytes:
    """COCO's, whose ids of categories have gaps."""
    names = list(dict.fromkeys(label for found in labels.values() for label in found))
    images = [{"id": 5 * n, "file_name": name} for n, name in enumerate(labels)]
    annotations = [
        {"id": len(labels) * n + m, "image_id": 5 * n, "category_id": 7 * names.index(label)}
        for n, found in enumerate(labels.values())
        for m, label in enumerate(found)
    ]
    categories = [{"id": 7 * n, "name": name} for n, name in enumerate(names)]
    return json.dumps(
        {"images": images, "annotations": annotations, "categories": categories}
    ).encode()
