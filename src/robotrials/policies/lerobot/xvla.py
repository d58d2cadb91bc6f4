"""X-VLA brings its own processing of observations and actions to a benchmark, in the place of the benchmark's.

lerobot-eval (0.6.1, ``envs/factory.py``) swaps the environment's processors for X-VLA's: pictures normalised as
ImageNet's and the id of the robot's domain before the checkpoint's own steps, and after them the gripper and the six
numbers of a rotation made into LIBERO's action of seven. Its step that turns LIBERO's raw observation into a state of
20 numbers, and of the pictures the first alone, is the benchmark's here: ``--env.type=libero --env.layout=xvla``.
"""

from __future__ import annotations

from robotrials.policies.lerobot.names import PolicyProcessorPipeline

KIND = "xvla"


def add_benchmark_steps(preprocessor: PolicyProcessorPipeline, postprocessor: PolicyProcessorPipeline) -> None:
    """Put X-VLA's steps around those of the checkpoint, in place, but for those that it holds itself."""
    from lerobot.policies.xvla.processor_xvla import (
        XVLAAddDomainIdProcessorStep,
        XVLAImageNetNormalizeProcessorStep,
        XVLARotation6DToAxisAngleProcessorStep,
    )

    before = (XVLAImageNetNormalizeProcessorStep, XVLAAddDomainIdProcessorStep)
    present = {type(step) for step in (*preprocessor.steps, *postprocessor.steps)}
    preprocessor.steps = [*(kind() for kind in before if kind not in present), *preprocessor.steps]
    if XVLARotation6DToAxisAngleProcessorStep not in present:
        postprocessor.steps = [*postprocessor.steps, XVLARotation6DToAxisAngleProcessorStep()]
