"""XML of strangers: no document types, so no entities that grow or reach out."""

from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

from saccade.data.readers.report import BadRow


class _PlainBuilder(TreeBuilder):
    """Builds elements, and stops where a document type begins, before anything in it is read."""

    def doctype(self, *_: object) -> None:
        raise BadRow("DOCTYPE: it may hide entities, so it is not read; take that line away")


def parse_xml(raw: bytes) -> Element:
    """The root; all that can be wrong with a file is a bad row."""
    parser = XMLParser(target=_PlainBuilder())
    try:
        parser.feed(raw)
        return parser.close()
    except ParseError as error:
        line, column = error.position
        why = str(error).partition(":")[0]
        raise BadRow(f"not XML: {why} at line {line}, column {column + 1}; save it again") from None
    except (ValueError, LookupError) as error:  # encodings that are unknown, or of several bytes
        raise BadRow(f"not XML: {error}; save it as UTF-8") from None


def text_at(element: Element, path: str) -> str:
    """The text of an element below; "" where there is none."""
    return (element.findtext(path) or "").strip()
