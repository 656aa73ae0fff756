import Testing
import Trebuchet

@testable import TrebuchetServices

@Suite struct MagicCodesTests {
    private enum Step {
        case send(UInt8, to: String)
        case use(UInt8, for: String)
        case wait(Int64)
    }

    private static let minute: Int64 = 60_000
    private static let good = "ok"

    /// Steps with what each comes to.
    @Test(
        "a code is good once, for ten minutes and five tries, and until the next one",
        arguments: [
            [(Step.send(1, to: "a"), good), (.use(1, for: "a"), good), (.use(1, for: "a"), "noCode")],
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
            // A new code brings new tries.
            [
                (.send(1, to: "a"), good), (.use(2, for: "a"), "wrong 4"), (.send(3, to: "a"), good),
                (.use(2, for: "a"), "wrong 4"),
            ],
            // Two are kept; a third is refused until one of them has expired.
            [
                (.send(1, to: "a"), good), (.wait(minute), good), (.send(2, to: "b"), good),
                (.send(3, to: "c"), "full"), (.send(4, to: "a"), good), (.wait(9 * minute), good),
                (.send(3, to: "c"), "full"), (.wait(minute), good), (.send(3, to: "c"), good),
                (.use(2, for: "b"), "noCode"), (.use(3, for: "c"), good),
            ],
        ])
    private func table(_ steps: [(step: Step, outcome: String)]) {
        var limits = AuthLimits()
        limits.pendingCodes = 2
        var codes = MagicCodes(limits)
        var now: Int64 = 0
        for (index, (step, outcome)) in steps.enumerated() {
            var actual = Self.good
            do throws(AuthError) {
                switch step {
                case .send(let code, let address): try codes.add([code], for: address, at: now)
                case .use(let code, let address): try codes.use([code], for: address, at: now)
                case .wait(let time): now += time
                }
            } catch {
                switch error {
                case .wrongCode(let left): actual = "wrong \(left)"
                case .limitReached("pendingCodes"): actual = "full"
                default: actual = error == .noCode ? "noCode" : "\(error)"
                }
            }
            #expect(actual == outcome, "step \(index)")
        }
    }

    @Test("a code that was not sent is taken back, and not the one that has replaced it")
    func takenBack() throws {
        var codes = MagicCodes(AuthLimits())
        try codes.add([1], for: "a", at: 0)
        try codes.add([2], for: "a", at: 0)
        codes.remove([1], for: "a")
        try codes.use([2], for: "a", at: 0)
        try codes.add([3], for: "a", at: 0)
        codes.remove([3], for: "a")
        #expect(throws: AuthError.noCode) { try codes.use([3], for: "a", at: 0) }
    }

    @Test("a table of rates holds each to its own, and takes no more than it has room for")
    func rates() throws {
        var table = RateTable(RateLimit(callsPerSecond: 1, burst: 2), capacity: 2)
        for _ in 0..<2 { try table.take("a", at: 0) }
        #expect(throws: AuthError.rateLimited(retryAfterMilliseconds: 1000)) { try table.take("a", at: 0) }
        try table.take("b", at: 0)
        #expect(throws: AuthError.rateLimited(retryAfterMilliseconds: 1000)) { try table.take("c", at: 0) }
        // By then "b" has back what it used, and gives way.
        try table.take("c", at: 1500)
        #expect(throws: AuthError.self) { try table.take("d", at: 1500) }
    }
}
