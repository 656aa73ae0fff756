import NodeSupport
import Synchronization
import Trebuchet
import TrebuchetActors

/// Records the outcomes of calls of rolls, and contradictions between these and the final states.
final class OrderedCallChecker: Sendable {
    static let names = (0..<6).map { "rolls/\($0)" }

    private struct Contents {
        var acknowledged: [Int: (name: String, number: Int)] = [:]
        var unknown: Set<Int> = []
        var refused: Set<Int> = []
        var findings: [String] = []
    }

    private let contents = Mutex(Contents())

    var ended: Int { contents.withLock { $0.acknowledged.count + $0.unknown.count + $0.refused.count } }
    var findings: [String] { contents.withLock { $0.findings } }

    func found(_ text: String) { contents.withLock { $0.findings.append(text) } }

    func note(_ call: Int, on name: String, _ body: () async throws -> Int) async {
        do {
            let number = try await body()
            contents.withLock { $0.acknowledged[call] = (name, number) }
        } catch let error as TrebuchetError where error.code == .unknownOutcome {
            contents.withLock { _ = $0.unknown.insert(call) }
        } catch let error as TrebuchetError where error.code == .unavailable {
            contents.withLock { _ = $0.refused.insert(call) }
        } catch {
            found("call \(call) ended with \(error)")
        }
    }

    func compare(with rolls: [String: [Int]]) {
        let contents = contents.withLock { $0 }
        for (name, calls) in rolls {
            for (call, times) in Dictionary(grouping: calls.filter { $0 != 0 }, by: { $0 }) where times.count > 1 {
                found("call \(call) was done \(times.count) times on \(name)")
            }
        }
        for (call, acknowledged) in contents.acknowledged {
            let calls = rolls[acknowledged.name] ?? []
            if !calls.indices.contains(acknowledged.number - 1) || calls[acknowledged.number - 1] != call {
                found(
                    "call \(call) was acknowledged as the \(acknowledged.number). of \(acknowledged.name), which has \(calls)"
                )
            }
        }
        let all = Set(rolls.values.joined())
        for call in contents.refused where all.contains(call) { found("call \(call) was refused as not made, and was") }
    }
}

/// Reads the versions of a roll: each must have one call more than the previous one, or the stream restarts after `overflow`.
final class OrderedCallObserver: Sendable {
    let name: String
    let who: String
    private let roll: OrderedCallLog
    private let book: OrderedCallChecker
    private let contents = Mutex<[Int]>([])
    /// Set when its client is about to be closed.
    let isClosed = Flag()

    init(_ roll: OrderedCallLog, _ name: String, _ who: String, _ book: OrderedCallChecker) {
        (self.roll, self.name, self.who, self.book) = (roll, name, who, book)
    }

    var last: [Int] { contents.withLock { $0 } }

    /// Runs until the client is closed.
    func run() async {
        while true {
            let stream = await roll.observeCalls()
            var isFirst = true
            for await calls in stream {
                let before = last
                if !calls.starts(with: before) { book.found("\(who): \(name) went from \(before) to \(calls)") }
                // An unchanged state is not persisted: it starts from its initial value at the next owner.
                if !isFirst, !before.isEmpty, calls.count != before.count + 1 {
                    book.found("\(who): \(calls.count) calls of \(name) came after \(before.count)")
                }
                isFirst = false
                contents.withLock { $0 = calls }
            }
            guard !isClosed.isSet else { return }
            guard case .failed(let error) = stream.outcome else {
                return book.found(
                    "\(who): the stream of \(name) ended at \(last.count): \(String(describing: stream.outcome))")
            }
            // It may fail to start while the coordination store is unavailable; once started it continues.
            guard error.code == .overflow || isFirst && error.code == .unavailable else {
                return book.found("\(who): the stream of \(name) ended at \(last.count): \(error)")
            }
        }
    }
}
