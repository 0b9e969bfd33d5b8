"""Run workers in containers of docker or podman, in an image that is pinned."""

from ci_perf.hooks import Feature, FeatureCommand, FeatureLauncher

_LAUNCHER = FeatureLauncher(
    open="ci_perf.features.containers.settings:open_launcher",
    read="ci_perf.features.containers.settings:read",
    examine="ci_perf.features.containers.examine:examine",
)
FEATURE = Feature(
    commands={
        "pin": FeatureCommand(
            group="CI and scale",
            does="Write the digest of an image into suite.toml, so that all runners use the "
            "same image.",
            target="ci_perf.features.containers.command:pin_command",
            shown=False,
        )
    },
    launchers={"docker": _LAUNCHER, "podman": _LAUNCHER},
)
