import Testing
import TrebuchetActors

@testable import Trebuchet

/// Connections of other nodes of whose calls nothing is kept any more; nodes are numbers, and parties are hosts.
@Suite struct ForgottenNamesTests {
    private var names = ForgottenNames(.init(all: 4, perParty: 2, numbers: 2))

    private mutating func add(_ node: UInt64, _ number: UInt64, upTo call: UInt64 = 9, of host: UInt64 = 1) {
        names.add(SessionName(instance: node, number: number, secret: number), upTo: call, of: .host(host))
    }

    private func mayHaveRun(
        _ node: UInt64, _ number: UInt64, call: UInt64 = 1, of host: UInt64 = 1, secret: UInt64? = nil
    ) -> Bool {
        names.contains(
            call, over: SessionName(instance: node, number: number, secret: secret ?? number), of: .host(host))
    }

    @Test("of one that is known by name those calls may have run that are up to its greatest, whoever asks")
    mutating func byName() {
        add(1, 5, upTo: 7)
        add(1, 5, upTo: 6)
        #expect(mayHaveRun(1, 5, call: 7) && mayHaveRun(1, 5, call: 1, of: 2))
        #expect(!mayHaveRun(1, 5, call: 8))
        #expect(!mayHaveRun(1, 4) && !mayHaveRun(1, 6) && !mayHaveRun(2, 5))
        #expect(!mayHaveRun(1, 5, secret: 1), "a name that was made up is not that of another")
        #expect(names.count == 1)
    }

    @Test(
        "a party that has had more is asked no more of its oldest ones, nor of those before them; others are not touched"
    )
    mutating func perParty() {
        add(1, 1, of: 2)
        for number in [10, 20, 30, 40] as [UInt64] { add(1, number) }
        #expect(names.count == 3)
        for number in [10, 20, 30, 40, 15, 3] as [UInt64] { #expect(mayHaveRun(1, number)) }
        #expect(!mayHaveRun(1, 21) && !mayHaveRun(2, 10))
        #expect(mayHaveRun(1, 1, of: 2) && !mayHaveRun(1, 15, of: 2))
    }

    @Test("of all those go that came first")
    mutating func all() {
        for host in 1...6 as ClosedRange<UInt64> { add(1, host * 10, of: host) }
        #expect(names.count == 4)
        #expect(mayHaveRun(1, 10, of: 1) && mayHaveRun(1, 19, of: 2) && mayHaveRun(1, 60, of: 9))
        #expect(!mayHaveRun(1, 10, of: 9))
    }

    @Test("however many come, no more is kept")
    mutating func bounded() {
        for number in 1...10_000 as ClosedRange<UInt64> { add(number % 7, number, of: number % 5) }
        #expect(names.count == 4)
        #expect(mayHaveRun(10_000 % 7, 10_000, of: 0))
    }
}
