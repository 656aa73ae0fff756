import Synchronization

/// The lines that a client pool prints for its judge.
enum Output {
    private static let findings = Mutex<Set<String>>([])

    static func printLine(_ line: String) { print(line) }

    /// Each finding once: a fault that repeats itself would hide others.
    static func finding(_ text: String) {
        if findings.withLock({ $0.insert(text).inserted }) { printLine("finding \(text)") }
    }
}

/// The current step of each client of a pool, to find the reason when it does not end.
final class ClientProgress: Sendable {
    /// Those of the writers of this process.
    static let writers = ClientProgress()

    private let entries = Mutex<[String: String]>([:])

    func set(_ name: String, _ text: String?) { entries.withLock { $0[name] = text } }

    var lines: [String] { entries.withLock { $0.map { "\($0.key): \($0.value)" }.sorted() } }
}

/// Where a reader waits while it is stalled.
final class Gate: Sendable {
    private let isClosed = Mutex(false)

    func close() { isClosed.withLock { $0 = true } }
    func open() { isClosed.withLock { $0 = false } }

    func pass() async {
        while isClosed.withLock({ $0 }) { try? await Task.sleep(for: .milliseconds(2)) }
    }
}

/// How much has been sent to the observers of each game, over all of its lives; its boards tell.
final class SentBytes: Sendable {
    private struct Count {
        var life = 0
        var bytes = 0
        var total = 0
    }

    private let counts = Mutex<[Int: Count]>([:])

    func note(_ game: Int, _ board: VersionedBoardState) {
        counts.withLock { counts in
            var count = counts[game, default: Count()]
            if count.life != board.life { (count.life, count.bytes) = (board.life, 0) }
            count.total += max(0, board.sentBytes - count.bytes)
            count.bytes = max(count.bytes, board.sentBytes)
            counts[game] = count
        }
    }

    func total(_ game: Int) -> Int { counts.withLock { $0[game]?.total ?? 0 } }
}
