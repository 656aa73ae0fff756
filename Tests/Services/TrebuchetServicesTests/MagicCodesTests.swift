import Testing
import Trebuchet

@testable import TrebuchetServices

@Suite struct MagicCodesTests {
    private enum Step {
        case send(UInt8, to: String, from: Int = 0)
        case use(UInt8, for: String, from: Int = 0)
        case wait(Int64)
    }

    private static let minute: Int64 = 60_000
    private static let good = "ok"

    private typealias Steps = [(step: Step, outcome: String)]

    /// Sequences of steps with their outcomes.
    private static let walks: [Steps] = [
        [(.send(1, to: "a"), good), (.use(1, for: "a"), good), (.use(1, for: "a"), "noCode")],
        [(.use(1, for: "a"), "noCode")],
        [(.send(1, to: "a"), good), (.use(1, for: "b"), "noCode"), (.use(1, for: "a"), good)],
        [(.send(1, to: "a"), good), (.wait(10 * minute - 1), good), (.use(1, for: "a"), good)],
        [(.send(1, to: "a"), good), (.wait(10 * minute), good), (.use(1, for: "a"), "noCode")],
        [
            (.send(1, to: "a"), good), (.send(2, to: "a"), good), (.use(1, for: "a"), "wrong 4"),
            (.use(2, for: "a"), good),
        ],
        [
            (.send(1, to: "a"), good), (.use(2, for: "a"), "wrong 4"), (.use(2, for: "a"), "wrong 3"),
            (.use(2, for: "a"), "wrong 2"), (.use(2, for: "a"), "wrong 1"), (.use(2, for: "a"), "wrong 0"),
            (.use(1, for: "a"), "noCode"),
        ],
        // A new code allows new guesses.
        [
            (.send(1, to: "a"), good), (.use(2, for: "a"), "wrong 4"), (.send(3, to: "a"), good),
            (.use(2, for: "a"), "wrong 4"),
        ],
        // Two codes are kept; for a third the oldest is evicted, unless one has expired.
        [
            (.send(1, to: "a"), good), (.wait(minute), good), (.send(2, to: "b"), good),
            (.send(3, to: "c"), good), (.use(1, for: "a"), "noCode"), (.use(2, for: "b"), good),
            (.use(3, for: "c"), good),
        ],
        [
            (.send(1, to: "a"), good), (.wait(9 * minute), good), (.send(2, to: "b"), good), (.wait(minute), good),
            (.send(3, to: "c"), good), (.use(2, for: "b"), good), (.use(3, for: "c"), good),
        ],
        // Another host does not get the place of a host's only code, and is refused until one expires.
        [
            (.send(1, to: "a", from: 1), good), (.wait(minute), good), (.send(2, to: "b", from: 2), good),
            (.send(3, to: "c", from: 3), "full 540000"), (.send(4, to: "c", from: 4), "full 540000"),
            (.send(5, to: "b", from: 2), good), (.wait(9 * minute), good), (.send(6, to: "c", from: 3), good),
            (.use(5, for: "b", from: 2), good), (.use(6, for: "c", from: 3), good),
        ],
        // The owner with the most codes loses the oldest one.
        [
            (.send(1, to: "a", from: 1), good), (.send(2, to: "b", from: 2), good),
            (.send(3, to: "c", from: 2), good), (.use(2, for: "b", from: 2), "noCode"),
            (.use(1, for: "a", from: 1), good), (.use(3, for: "c", from: 2), good),
        ],
        // Each host has a separate code for an address, which another host cannot void.
        [
            (.send(1, to: "a", from: 1), good), (.send(2, to: "a", from: 2), good),
            (.use(1, for: "a", from: 1), good), (.use(2, for: "a", from: 2), good),
        ],
        // A host with its own code cannot guess another host's.
        [
            (.send(1, to: "a", from: 1), good), (.send(2, to: "a", from: 2), good),
            (.use(1, for: "a", from: 2), "wrong 4"), (.use(1, for: "a", from: 1), good),
        ],
        // Wrong guesses elsewhere do not count for the requesting host; all others have five together.
        [
            (.send(1, to: "a", from: 1), good), (.use(2, for: "a", from: 2), "wrong 4"),
            (.use(2, for: "a", from: 3), "wrong 3"), (.use(2, for: "a", from: 4), "wrong 2"),
            (.use(2, for: "a", from: 5), "wrong 1"), (.use(2, for: "a", from: 6), "wrong 0"),
            (.use(1, for: "a", from: 7), "noCode"), (.use(3, for: "a", from: 1), "wrong 4"),
            (.use(1, for: "a", from: 1), good),
        ],
        // A code may be entered in another network than the one that requested it.
        [
            (.send(1, to: "a", from: 1), good), (.use(1, for: "a", from: 2), good),
            (.use(1, for: "a", from: 1), "noCode"),
        ],
        [
            (.send(1, to: "a", from: 1), good), (.wait(10 * minute), good), (.use(1, for: "a", from: 2), "noCode"),
        ],
    ]

    @Test("a code is valid once, for ten minutes and five guesses, and until the next one", arguments: walks)
    private func table(_ steps: [(step: Step, outcome: String)]) {
        var limits = AuthLimits()
        limits.pendingCodes = 2
        var codes = MagicCodes<Int>(limits)
        var now: Int64 = 0
        for (index, (step, outcome)) in steps.enumerated() {
            var actual = Self.good
            do throws(AuthError) {
                switch step {
                case .send(let code, let address, let host):
                    try codes.addCode([code], for: address, from: host, at: now)
                case .use(let code, let address, let host):
                    try codes.consumeCode([code], for: address, from: host, at: now)
                case .wait(let time): now += time
                }
            } catch {
                switch error {
                case .wrongCode(let left): actual = "wrong \(left)"
                case .rateLimited(let wait): actual = "full \(wait)"
                default: actual = error == .noCode ? "noCode" : "\(error)"
                }
            }
            #expect(actual == outcome, "step \(index)")
        }
    }

    @Test("an unsent code is withdrawn, but not its replacement")
    func takenBack() throws {
        var codes = MagicCodes<Int>(AuthLimits())
        try codes.addCode([1], for: "a", from: 1, at: 0)
        try codes.addCode([2], for: "a", from: 1, at: 0)
        codes.remove([1], for: "a", from: 1)
        try codes.consumeCode([2], for: "a", from: 1, at: 0)
        try codes.addCode([3], for: "a", from: 1, at: 0)
        codes.remove([3], for: "a", from: 1)
        #expect(throws: AuthError.noCode) { try codes.consumeCode([3], for: "a", from: 1, at: 0) }
    }
}
