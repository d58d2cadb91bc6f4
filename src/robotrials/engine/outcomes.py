"""What becomes of the episodes that workers have played: records for the ledger, another try, a task given up."""

from __future__ import annotations

from collections.abc import Callable

from robotrials.control.messages import REASON, Done
from robotrials.engine.observer import Observer
from robotrials.engine.progress import Tally
from robotrials.engine.queue import EpisodeQueue, LeasedEpisode
from robotrials.errors import ContractError
from robotrials.plan.episode import EpisodeSpec
from robotrials.results.ledger import Ledger
from robotrials.results.record import EpisodeRecord, error_record


class Outcomes:
    """Settles leases in the queue and gathers their records, which ``commit`` writes down together."""

    def __init__(
        self,
        queue: EpisodeQueue,
        ledger: Ledger,
        tally: Tally,
        observer: Observer,
        is_enough: Callable[[EpisodeRecord], bool] = lambda record: False,
    ) -> None:
        self._queue = queue
        self._ledger = ledger
        self._tally = tally
        self._observer = observer
        self._is_enough = is_enough
        self._records: list[tuple[EpisodeRecord, bool]] = []
        self._said: set[str | None] = set()
        self.enough = False
        """``is_enough`` has said so of a record that was written down."""

    def commit(self) -> None:
        """
        Raises:
            LedgerError: a record could not be written.
        """
        if not self._records:
            return
        records, self._records = self._records, []
        accepted = set(self._ledger.record(records))
        for record, final in records:
            if final and record.episode in accepted:
                self._tally.add(record)
                # Each is asked about: which of them decided depends on the order of arrival, whether they did does not.
                self.enough = self._is_enough(record) or self.enough

    def finish(self, leased: LeasedEpisode, record: EpisodeRecord, note: str | None = None) -> None:
        """The episode was played to its end. A ``note`` that differs from an earlier one only in the episode that it
        names is not shown again: what holds for one mostly holds for many."""
        what = (note or "").partition(REASON)[2] or note
        if note and what not in self._said:
            self._said.add(what)
            self._observer.on_message(note)
        self._queue.finish(leased, record.timings.total)
        self._records.append((record, True))

    def fail(self, leased: LeasedEpisode, done: Done, renewable: bool = False) -> bool:
        """The attempt erred, as ``done`` says; True: the episode is to be played again. ``renewable`` as in
        ``EpisodeQueue.fail``.

        Raises:
            ContractError: nothing has worked yet, and trying again would not mend it.
        """
        record, retryable = done.record, done.retryable
        name, reason = leased.episode.name, (record.error or "").split("\n", 1)[0]
        if self._queue.fail(leased, retryable, done.fault, renewable):
            self._records.append((record, False))
            self._observer.on_message(f"{name}: attempt {leased.attempt} erred, trying again: {reason}")
            return True
        self._records.append((record, True))
        self._observer.on_message(f"{name}: error, given up at attempt {leased.attempt}: {reason}")
        misfit = not retryable and done.at_start and not self._queue.has_finished(leased.episode)
        if misfit and self._tally.finished == 0 and all(record.is_error for record, _ in self._records):
            raise ContractError(reason)
        if misfit or self._queue.is_hopeless(leased.episode):
            self._abandon(leased.episode, reason)
        return False

    def _abandon(self, episode: EpisodeSpec, reason: str) -> None:
        """Record the rest of a task that only errs as error, without spending hours on it."""
        dropped = self._queue.abandon_task(episode)
        if not dropped:
            return
        self._observer.on_message(
            f"{episode.suite}/{episode.task}: only errors so far; its other {len(dropped)} episodes are not run"
        )
        for spec in dropped:
            text = f"not run, since every episode of {episode.task} before it erred: {reason}"
            self._records.append((error_record(spec.id, 0, "", text), True))
