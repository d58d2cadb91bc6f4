"""One episode, from reset to record: the inner loop of everything.

The chunk is played here, beside the simulator. Cameras are rendered when the policy looks, the video needs a frame or
the step is kept for a dataset, each at most once a step; physics does not depend on it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from robotrials.benchmarks.base import Env, Observation
from robotrials.benchmarks.scoring import Scoring
from robotrials.control.heartbeat import Heartbeat
from robotrials.datasets.spool import EpisodeSpool
from robotrials.errors import ContractError, NonFiniteError, NoPictureError, RobotrialsError
from robotrials.plan.episode import EpisodeSpec
from robotrials.plan.global_random import seed_global_generators
from robotrials.plan.task import Feature, TaskSpec
from robotrials.policies.base import Policy, PolicySpec
from robotrials.policies.checks import plain_array, require_numbers
from robotrials.policies.fit import env_key_of
from robotrials.results.record import EndReason, EpisodeRecord, Timings
from robotrials.results.video import EpisodeVideo
from robotrials.worker.finite import FiniteCheck
from robotrials.worker.score import Score
from robotrials.worker.signal_monitor import WATCHED_EPISODES, SignalMonitor


class ObservationWindow:
    """What the policy sees: the keys it reads, under the names it knows, over its last ``n_obs_steps`` steps.

    ``kept`` are cameras that are drawn besides; with it, even if empty, ``seen`` is filled for a policy that reads
    nothing too."""

    def __init__(
        self,
        spec: PolicySpec,
        task: TaskSpec,
        rename_map: Mapping[str, str],
        kept: Sequence[str] | None = None,
        finite: FiniteCheck | None = None,
    ) -> None:
        self._finite = finite or FiniteCheck(task)
        self._instruction = task.instruction
        self._features = task.observations
        self._keys = {env_key_of(key, rename_map): key for key in spec.observations}
        self._shapes = {
            key: feature.shape
            for key, feature in task.observations.items()
            if key in self._keys and feature.dtype != "str"
        }
        self._looks = bool(self._keys) or kept is not None
        self.cameras = tuple(key for key in task.images if key in self._keys or key in (kept or ()))
        self._window: deque[Observation] = deque(maxlen=spec.n_obs_steps)
        self.renders = 0
        self.seen_at = -1
        self.seen: Observation = {}
        """All that was observed at step ``seen_at``, under the benchmark's names."""

    def look(self, env: Env, step: int) -> None:
        """Take in the scene as it is at ``step``; the first one fills the whole window, as LeRobot does."""
        if not self._looks:
            return
        raw = env.observe(self.cameras)
        raw.setdefault("task", self._instruction)
        if step == 0 or any(np.shape(raw.get(key, ())) != shape for key, shape in self._shapes.items()):
            self._check(raw)
        self._finite.look(raw, step)
        self.seen_at, self.seen = step, raw
        self.renders += len(self.cameras)
        observation = {name: raw[key] for key, name in self._keys.items()}
        self._window.append(observation)
        while len(self._window) < (self._window.maxlen or 1):
            self._window.append(observation)

    def _check(self, raw: Observation) -> None:
        """What is observed is what the task declares."""
        for key in self._keys:
            if key not in raw:
                raise ContractError(f"the policy reads {key}, but the benchmark's observation holds {', '.join(raw)}")
            declared, value = self._features.get(key), raw[key]
            if declared is None or isinstance(value, str):
                continue
            found = Feature(tuple(value.shape), str(value.dtype))
            if found != declared:
                raise ContractError(f"the benchmark declares {key} as {declared}, but gave {found}")

    def frame(self, key: str | None, step: int) -> np.ndarray | None:
        """The image ``key`` if it was drawn at this very step."""
        if key is None or step != self.seen_at or key not in self.cameras:
            return None
        frame = self.seen[key]
        return frame if isinstance(frame, np.ndarray) else None

    def observation(self) -> Observation:
        """The newest observation, or for n_obs_steps > 1 all of the window on a leading axis, oldest first."""
        if not self._keys:
            return {}
        if self._window.maxlen == 1:
            return self._window[-1]
        stacked: Observation = {}
        for key, newest in self._window[-1].items():
            if isinstance(newest, str):
                stacked[key] = newest
            else:
                stacked[key] = np.stack([np.asarray(past[key]) for past in self._window])
        return stacked


class Rollout:
    """Plays episodes of one task in one environment with one policy."""

    def __init__(
        self,
        env: Env,
        policy: Policy,
        task: TaskSpec,
        rename_map: Mapping[str, str],
        heartbeat: Heartbeat,
        seeds_globals: bool = True,
        scoring: Scoring | None = None,
        refuses_nonfinite: bool = False,
    ) -> None:
        """``seeds_globals``: the process's global random generators are this episode's alone. ``scoring``: what counts
        as success or failure, if not as the benchmark's own words have it. ``refuses_nonfinite``: an observation or
        reward with NaN or infinity is an error."""
        self._env = env
        self._policy = policy
        self._spec = policy.spec()
        self._task = task
        self._rename_map = rename_map
        self._heartbeat = heartbeat
        self._seeds_globals = seeds_globals
        self._scoring = scoring or Scoring()
        self._refuses_nonfinite = refuses_nonfinite
        self.finite = FiniteCheck(task, refuses_nonfinite)
        """What was seen of the episode that ``run`` has played last."""

    def run(
        self,
        episode: EpisodeSpec,
        attempt: int,
        worker: str,
        video: EpisodeVideo | None,
        spool: EpisodeSpool | None = None,
    ) -> EpisodeRecord:
        """Play ``episode`` to its end. Video and spool are fed, neither finished nor discarded.

        Raises:
            ContractError: policy and benchmark do not fit (shape, NaN, no success signal).
            NonFiniteError: an observation or the rewards hold NaN or infinity, and such are refused.
        """
        clock = time.perf_counter
        env, policy, task, spec, heartbeat = self._env, self._policy, self._task, self._spec, self._heartbeat
        started_at, began = time.time(), clock()
        finite = self.finite = FiniteCheck(task, self._refuses_nonfinite)
        window = ObservationWindow(spec, task, self._rename_map, None if spool is None else spool.cameras, finite)
        if self._seeds_globals:
            seed_global_generators(episode)
        heartbeat.step = 0
        heartbeat.enter("reset")
        score = Score(task.name, episode, self._scoring)
        end: EndReason | None = None
        try:
            env.reset(episode)
        except Exception as error:  # noqa: BLE001  raised again unless it was named as a failure
            end = score.raised(error)
        else:
            session = policy.new_session(episode, task, env if spec.needs_env else None)
        mark = clock()
        reset_s, simulate_s, render_s, infer_s, wait_s, film_s = mark - began, 0.0, 0.0, 0.0, 0.0, 0.0

        step, looks, video_renders = 0, 0, 0
        monitor = SignalMonitor(task.action) if episode.index < WATCHED_EPISODES and end is None else None
        if end is None:
            window.look(env, 0)
        while end is None:
            before = clock()
            render_s += before - mark
            heartbeat.enter("infer")
            chunk = self._chunk(policy.act([session], [window.observation()]), looks)
            looks += 1
            if monitor is not None:
                monitor.looked(window.observation())
                monitor.played(chunk)
            heartbeat.enter("simulate")
            mark = clock()
            inside = policy.infer_s
            infer_s += mark - before if inside is None else inside
            wait_s += 0.0 if inside is None else mark - before - inside
            last = len(chunk) - 1
            for position, action in enumerate(chunk):
                if video is not None and video.wants(step):
                    mark, video_renders, spent = self._film(video, window, step, mark, video_renders)
                    film_s += spent
                try:
                    reward, terminated, truncated, step_success = env.step(action)
                except Exception as error:  # noqa: BLE001  raised again unless it was named as a failure
                    end = score.raised(error)
                    break
                now = clock()
                simulate_s += now - mark
                mark = now
                step += 1
                heartbeat.count += 1
                heartbeat.step = step
                reward = float(reward)  # simulators return NumPy's scalars, which do not cross the wire
                end = score.add(reward, terminated, truncated, step_success)
                if spool is not None:
                    spool.add(window.seen, action, reward, bool(step_success))
                if end is not None:
                    break
                if last - position < spec.n_obs_steps or spool is not None:
                    # The last steps before the policy acts again are the ones it wants to have seen.
                    heartbeat.phase = "render"
                    window.look(env, step)
                    now = clock()
                    render_s += now - mark
                    mark = now
                    heartbeat.phase = "simulate"
        finite.reward(score.reward_sum)
        if video is not None and end is not EndReason.EXCEPTION:
            _, video_renders, spent = self._film(video, window, step, mark, video_renders)
            film_s += spent
        return EpisodeRecord(
            episode=episode.id,
            attempt=attempt,
            worker=worker,
            end=end,
            success=score.success,
            steps=step,
            reward_sum=score.reward_sum,
            reward_max=score.reward_max,
            looks=looks,
            renders=window.renders + video_renders,
            nonfinite=finite.count,
            timings=Timings(
                reset=reset_s,
                simulate=simulate_s,
                render=render_s,
                infer=infer_s,
                wait=wait_s,
                film=film_s,
                total=clock() - began,
            ),
            error=score.exception,
            started_at=started_at,
            marks=score.marks(end),
            signals=None if monitor is None else monitor.signals(),
        )

    def _film(
        self, video: EpisodeVideo, window: ObservationWindow, step: int, mark: float, renders: int
    ) -> tuple[float, int, float]:
        """Give the video this step's picture, drawn anew only if the policy has not just seen it. No film ends an
        episode: one that cannot be drawn is given up, with the reason."""
        frame = window.frame(self._task.record_key, step)
        try:
            if frame is None:
                self._heartbeat.phase = "render"
                frame = self._env.render()
                renders += 1
            video.add(step, frame)
        except NoPictureError as error:
            if not (error.by_design and video.has_frames):  # else the film ends a step before the episode
                video.give_up(str(error))
        except Exception as error:  # noqa: BLE001  a simulator may raise anything while it draws
            video.give_up(str(error) if isinstance(error, RobotrialsError) else f"{type(error).__name__}: {error}")
        self._heartbeat.phase = "simulate"
        now = time.perf_counter()
        return now, renders, now - mark

    def _chunk(self, answer: object, looks: int) -> np.ndarray:
        """The (T, A) actions to play of a (1, T', A) answer, checked."""
        spec, task = self._spec, self._task
        actions = plain_array(answer)
        require_numbers(spec.name, actions)
        if actions.ndim != 3 or actions.shape[0] != 1 or actions.shape[2] != task.action.dim:
            raise ContractError(
                f"policy {spec.name} returned actions of shape {actions.shape} for one episode of {task.name}; "
                f"right is (1, T, {task.action.dim}) with T >= {spec.n_action_steps}"
            )
        if actions.shape[1] < spec.n_action_steps:
            raise ContractError(
                f"policy {spec.name} returned a chunk of {actions.shape[1]} actions, "
                f"but says that {spec.n_action_steps} of each chunk are played"
            )
        chunk: np.ndarray = actions[0, : spec.n_action_steps]
        if not np.isfinite(chunk).all():
            why = self.finite.words()
            raise NonFiniteError(
                f"policy {spec.name} returned an action that is not finite numbers at its call {looks + 1} for "
                f"{task.name}: {chunk[:3].tolist()}" + (f"; {why}" if why else "")
            )
        return chunk
