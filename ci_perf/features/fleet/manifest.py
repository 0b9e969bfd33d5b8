"""Kubernetes: one Indexed Job, with a unit per index. Who applies it is up to its owner."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import jinja2

from ci_perf.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What a cluster has for units.

    ``image`` holds Python with ci_perf and torch, by its digest. ``claim`` is a
    PersistentVolumeClaim that many nodes may write, mounted at ``mount``. ``resources`` are those
    of a whole node, ``node_labels`` choose its nodes. At most ``at_once`` units run at once.
    """

    image: str
    claim: str
    mount: Path
    resources: Mapping[str, str] = field(default_factory=dict)
    node_labels: Mapping[str, str] = field(default_factory=dict)
    at_once: int | None = None


def render_job(
    cluster: Cluster, units: Sequence[str], *, name: str, plan: Path, root: Path, output: Path
) -> str:
    """Return the manifest of units, as YAML. Raises UsageError: pods would not find a path."""
    if "@sha256:" not in cluster.image:
        raise UsageError(
            "--image: expected an image by its digest (NAME@sha256:...), as a tag may be another "
            f"image on the next node, found {cluster.image!r}"
        )
    for what, path in {"the plan": plan, "the checkout": root, "--output": output}.items():
        if not path.is_relative_to(cluster.mount):
            raise UsageError(
                f"{what}: expected a path below --mount {cluster.mount}, where pods find the claim "
                f"{cluster.claim!r}, found {path}"
            )
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("ci_perf.features.fleet"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701  YAML: every value is written as JSON
        keep_trailing_newline=True,
    )
    template = environment.get_template("job.yaml.jinja")
    paths = {"plan_in_shell": shlex.quote(str(plan)), "root": str(root), "output": str(output)}
    known = {**asdict(cluster), **paths, "mount": str(cluster.mount)}
    return template.render(name=name, units=units, **known)
