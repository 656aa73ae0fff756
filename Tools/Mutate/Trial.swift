import Foundation
import Mutations
import Synchronization

/// The outcome of one mutant.
struct Outcome: Codable {
    enum Kind: String, Codable, CaseIterable {
        case expectation, crash, waiting, survived
        /// No test of the module reaches it.
        case unreached
    }

    let kind: Kind
    let detail: String
}

/// Tests mutants with parts of their module's tests, the fastest first.
struct Trial: Sendable {
    struct Part: Sendable {
        let suites: [String]
        let limit: Duration
    }

    let binary: String
    let number: Int
    let parts: [Part]

    /// - Parameter targets: the test targets of the mutant's module, the nearest first.
    init(binary: String, number: Int, targets: [String], reach: Reach) {
        self.binary = binary
        self.number = number
        var parts: [Part] = []
        for target in targets {
            let suites = reach.suites(of: target).filter { $0.failure == nil && $0.mutants.contains(number) }
                .sorted { $0.milliseconds < $1.milliseconds }
            var (names, sum): ([String], Int) = ([], 0)
            func end() {
                // Suites of a part run concurrently: the sum of their separate durations is more than they need.
                if !names.isEmpty { parts.append(Part(suites: names, limit: .milliseconds(8_000 + 3 * sum))) }
                (names, sum) = ([], 0)
            }
            for suite in suites {
                if sum + suite.milliseconds > (parts.isEmpty ? 4_000 : 10_000) { end() }
                names.append(suite.name)
                sum += suite.milliseconds
            }
            end()
        }
        self.parts = parts
    }

    enum Verdict {
        case outcome(Outcome)
        /// Only a time limit detected it, beside another run: repeat from this part, alone.
        case again(part: Int)
    }

    func run(from first: Int = 0, isAlone: Bool) async throws -> Verdict {
        if parts.isEmpty { return .outcome(Outcome(kind: .unreached, detail: "no test reaches it")) }
        for (index, part) in parts.enumerated().dropFirst(first) {
            let filter = Reach.filter(part.suites)
            var suspectTests: [String] = []
            var wasKilled = false
            trying: while true {
                switch try await run(filter, suspectTests, mutant: number, part.limit) {
                case .passed: break trying
                case .crashed(let how):
                    // Another process may have ended it: an effect of the mutant is reproducible.
                    if how.hasPrefix("signal \(SIGKILL) "), !wasKilled {
                        wasKilled = true
                        continue trying
                    }
                    return .outcome(Outcome(kind: .crash, detail: how))
                case .tookTooLong(let test):
                    guard isAlone else { return .again(part: index) }
                    return .outcome(
                        Outcome(kind: .waiting, detail: test.isEmpty ? part.suites.joined(separator: ", ") : test))
                case .failed(let test, let message):
                    // An issue of a thread outside of any test is searched among all tests.
                    if try await isConfirmed(test.isEmpty ? filter : Self.filter(test), part.limit) {
                        return .outcome(Outcome(kind: .expectation, detail: "\(Self.name(test)): \(message)"))
                    }
                    guard !test.isEmpty, !suspectTests.contains(Self.filter(test)) else { break trying }
                    suspectTests.append(Self.filter(test))
                }
            }
        }
        return .outcome(Outcome(kind: .survived, detail: "\(parts.reduce(0) { $0 + $1.suites.count }) suites reach it"))
    }

    /// True if the tests fail with the mutant: twice with it, and not without it, in alternation. A busy machine makes some tests fail
    /// occasionally.
    private func isConfirmed(_ filter: String, _ limit: Duration) async throws -> Bool {
        for _ in 0..<2 {
            if try await run(filter, [], mutant: number, limit) == .passed { return false }
            if try await run(filter, [], mutant: nil, limit) != .passed { return false }
        }
        return true
    }

    private func run(_ filter: String, _ skipped: [String], mutant: Int?, _ limit: Duration) async throws -> TestRun.End
    {
        try await TestRun(binary: binary, filter: filter, skipped: skipped, mutant: mutant, limit: limit).end
    }

    /// Without the source location that a test's identity ends with.
    private static func name(_ test: String) -> String {
        let words = test.split(separator: "/")
        return (words.last?.contains(".swift:") == true ? words.dropLast() : words[...]).joined(separator: "/")
    }

    private static func filter(_ test: String) -> String {
        "^" + NSRegularExpression.escapedPattern(for: name(test))
    }
}

/// A work queue for several consumers.
final class Queue<Element: Sendable>: Sendable {
    private let elements: Mutex<[Element]>
    init(_ elements: [Element]) { self.elements = Mutex(elements.reversed()) }
    func next() -> Element? { elements.withLock { $0.popLast() } }
}
