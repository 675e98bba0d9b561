"""How a field is called in JSON: `k8s_version` -> `k8sVersion`, where pydantic's own rule writes `k8SVersion`."""


def camel(name: str) -> str:
    """The camelCase name of a snake_case field."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)
