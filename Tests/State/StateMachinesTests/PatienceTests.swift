import Platform
import Testing

/// Tests of the limit of waits that check a condition again and again.
@Suite struct PatienceTests {
    @Test("a wait ends at its limit when it checks often", arguments: [1, 5, 20])
    func limit(milliseconds: Int) {
        let start = ContinuousClock.now
        var patience = Patience(.seconds(1), from: start)
        var now = start
        while !patience.isExhausted(at: now) { now += .milliseconds(milliseconds) }
        #expect(now - start == .seconds(1))
    }

    @Test("at most a fiftieth of the limit counts between two checks")
    func starved() {
        let start = ContinuousClock.now
        var patience = Patience(.seconds(5), from: start)
        let checks = (1...100).prefix { !patience.isExhausted(at: start + .seconds($0 * 60)) }
        #expect(checks.count == 49)
    }

    @Test("a wait without a limit ends at its first check")
    func zero() {
        var patience = Patience(.zero)
        let isExhausted = patience.isExhausted()
        #expect(isExhausted)
    }
}
