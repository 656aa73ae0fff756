internal import Relays

/// An ordered record of events with a way to wait for an entry: tests record and wait instead of sleeping.
package final class Journal: Sendable {
    private let log = Monitor<[String]>([])

    package init() {}

    package var entries: [String] { log.withLock { $0 } }

    package func record(_ entry: String) { log.change { $0.append(entry) }.woken.resume() }

    /// Returns when the entry has been recorded, or the task is cancelled.
    package func wait(for entry: String) async { await wait { $0.contains(entry) } }

    /// Returns when the condition holds for the entries, or the task is cancelled.
    package func wait(until condition: @escaping @Sendable ([String]) -> Bool) async {
        await log.wait { condition($0) ? () : nil }
    }
}
