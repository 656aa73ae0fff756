import Testing
import TrebuchetActors

@testable import Trebuchet

/// Call sessions of other nodes whose recorded responses were evicted; nodes are numbers, and parties are hosts.
@Suite struct EvictedSessionFilterTests {
    private var names = EvictedSessionFilter(
        .init(all: 4, perScope: 2, scopes: 2, nodesPerScope: 2, slots: 1 << 20, filterCapacity: 2))

    private mutating func add(_ node: UInt64, _ number: UInt64, upTo call: UInt64 = 9, of host: UInt64 = 1) {
        names.insert(
            QualifiedCallSessionID(instance: node, number: number, secret: number), upTo: call, of: .host(host))
    }

    private func mayHaveRun(
        _ node: UInt64, _ number: UInt64, call: UInt64 = 1, of host: UInt64 = 1, secret: UInt64? = nil
    ) -> Bool {
        names.contains(
            call, over: QualifiedCallSessionID(instance: node, number: number, secret: secret ?? number),
            of: .host(host))
    }

    @Test("calls of a session known by name may have run up to its greatest number, whichever party repeats them")
    mutating func byName() {
        add(1, 5, upTo: 7)
        add(1, 5, upTo: 6)
        #expect(mayHaveRun(1, 5, call: 7) && mayHaveRun(1, 5, call: 1, of: 2))
        #expect(!mayHaveRun(1, 5, call: 8))
        #expect(!mayHaveRun(1, 4) && !mayHaveRun(1, 6) && !mayHaveRun(2, 5))
        #expect(!mayHaveRun(1, 5, secret: 1), "a made-up name does not match another")
        #expect(names.count == 1)
    }

    @Test(
        "a party over its limit loses its oldest sessions, which count as evicted like earlier ones; others are unaffected"
    )
    mutating func perScope() {
        add(1, 1, of: 2)
        for number in [10, 20, 30, 40] as [UInt64] { add(1, number) }
        #expect(names.count == 3)
        for number in [10, 20, 30, 40, 15, 3] as [UInt64] { #expect(mayHaveRun(1, number)) }
        #expect(!mayHaveRun(1, 21) && !mayHaveRun(2, 10))
        #expect(mayHaveRun(1, 1, of: 2) && !mayHaveRun(1, 15, of: 2))
    }

    @Test("the oldest sessions of all parties are evicted first")
    mutating func all() {
        for host in 1...6 as ClosedRange<UInt64> { add(1, host * 10, of: host) }
        #expect(names.count == 4)
        #expect(mayHaveRun(1, 10, of: 1) && mayHaveRun(1, 19, of: 2) && mayHaveRun(1, 60, of: 9))
        #expect(!mayHaveRun(1, 9, of: 9))
    }

    @Test("a party whose connections have called here is remembered, however many others follow")
    mutating func removedNames() {
        add(1, 7)
        #expect(mayHaveRun(1, 7))
        for host in 2...300 as ClosedRange<UInt64> {
            add(1, host * 10, of: host)
            #expect(mayHaveRun(1, 7), "after \(host)")
        }
        // It is also remembered after calls through many more nodes.
        for node in 2...300 as ClosedRange<UInt64> { add(node, 8) }
        for node in 1...300 as ClosedRange<UInt64> { #expect(mayHaveRun(node, 7)) }
        // The filter reports nothing for other parties without sessions, not even for older numbers.
        let strangers = (1_000...2_000 as ClosedRange<UInt64>).filter { mayHaveRun(1, 6, of: $0) }
        #expect(strangers.count < 10)
    }

    @Test("the last evicted sessions are known, also when repeated from another address")
    mutating func movedScope() {
        for number in [1, 2, 3, 4] as [UInt64] { add(1, number) }
        #expect(names.count == 2)
        for number in [1, 2, 3, 4] as [UInt64] { #expect(mayHaveRun(1, number, of: 2)) }
        #expect(!mayHaveRun(1, 1, of: 2, secret: 9) && !mayHaveRun(1, 5, of: 2) && !mayHaveRun(2, 1, of: 2))
    }

    @Test("an approximate filter knows at least its capacity of names, with hardly any false positives")
    func sketch() {
        var sketch = ApproximateNameFilter(atLeast: 1_000)
        func name(_ number: UInt64) -> QualifiedCallSessionID {
            QualifiedCallSessionID(instance: 1, number: number, secret: number &* 77)
        }
        #expect(!sketch.contains(name(0)))
        for number in 0..<10_000 as Range<UInt64> {
            sketch.insert(name(number))
            #expect(sketch.contains(name(number)) && sketch.contains(name(number > 999 ? number - 999 : 0)))
        }
        #expect(!sketch.contains(name(0)))
        #expect((20_000..<40_000 as Range<UInt64>).count { sketch.contains(name($0)) } < 20)
    }

    @Test("memory use is bounded, however many names are added")
    mutating func bounded() {
        for number in 1...10_000 as ClosedRange<UInt64> { add(number % 7, number, of: number % 5) }
        #expect(names.count == 4)
        #expect(mayHaveRun(10_000 % 7, 10_000, of: 0))
    }
}
