import Platform
import Testing
import TrebuchetActors

@testable import Trebuchet

/// Connections of other nodes whose recorded responses were evicted; nodes are numbers, and scopes are hosts.
@Suite struct ForgottenCallWatermarksTests {
    private var calls = ForgottenCallWatermarks(
        .init(names: 3, claimedNames: 4, claimedNamesPerScope: 2, nodes: 2, scopes: 2))

    private mutating func add(
        _ node: UInt64, _ number: UInt64, upTo call: UInt64 = 9, of host: UInt64 = 1, isVerified: Bool = true
    ) {
        calls.insert(
            QualifiedCallSessionID(instance: node, number: number, secret: number), upTo: call, of: .host(host),
            isVerified: isVerified)
    }

    private func mayHaveRun(
        _ node: UInt64, _ number: UInt64, call: UInt64 = 1, of host: UInt64 = 1, secret: UInt64? = nil
    ) -> Bool {
        calls.mayHaveRun(
            call, over: QualifiedCallSessionID(instance: node, number: number, secret: secret ?? number),
            of: .host(host))
    }

    /// A late repeat, after connections 10, 20 … of node 1 were forgotten, each after its call 9.
    struct Repeat: Sendable, CustomTestStringConvertible {
        let forgotten: Int
        let connection: UInt64
        var node: UInt64 = 1
        var call: UInt64 = 9
        let mayHaveRun: Bool

        var testDescription: String { "\(forgotten) forgotten, call \(call) of \(node).\(connection)" }
    }

    @Test(
        "the last connections are known by name and call; of earlier ones all calls may have run",
        arguments: [
            Repeat(forgotten: 0, connection: 10, mayHaveRun: false),
            Repeat(forgotten: 3, connection: 10, mayHaveRun: true),
            Repeat(forgotten: 3, connection: 10, call: 10, mayHaveRun: false),
            Repeat(forgotten: 3, connection: 9, mayHaveRun: false),
            Repeat(forgotten: 3, connection: 40, mayHaveRun: false),
            Repeat(forgotten: 3, connection: 30, node: 2, mayHaveRun: false),
            // The watermark is 10.
            Repeat(forgotten: 4, connection: 10, mayHaveRun: true),
            Repeat(forgotten: 4, connection: 10, call: 10, mayHaveRun: true),
            Repeat(forgotten: 4, connection: 9, mayHaveRun: true),
            Repeat(forgotten: 4, connection: 11, mayHaveRun: false),
            Repeat(forgotten: 4, connection: 20, mayHaveRun: true),
            Repeat(forgotten: 4, connection: 20, call: 10, mayHaveRun: false),
            Repeat(forgotten: 4, connection: 9, node: 2, mayHaveRun: false),
            // The watermark is 50.
            Repeat(forgotten: 8, connection: 50, call: 100, mayHaveRun: true),
            Repeat(forgotten: 8, connection: 51, mayHaveRun: false),
            Repeat(forgotten: 8, connection: 80, mayHaveRun: true),
            Repeat(forgotten: 8, connection: 80, call: 10, mayHaveRun: false),
        ])
    mutating func late(example: Repeat) {
        for index in 0..<example.forgotten { add(1, UInt64(index + 1) * 10) }
        // Whichever party repeats the call.
        for host in 1...2 as ClosedRange<UInt64> {
            #expect(
                mayHaveRun(example.node, example.connection, call: example.call, of: host) == example.mayHaveRun)
        }
        #expect(calls.nameCount == min(3, example.forgotten))
    }

    @Test("an earlier connection that is forgotten late is below the watermark, and a lower call lowers nothing")
    mutating func outOfOrder() {
        add(1, 5, upTo: 7)
        add(1, 5, upTo: 6)
        #expect(mayHaveRun(1, 5, call: 7) && !mayHaveRun(1, 5, call: 8))
        #expect(!mayHaveRun(1, 5, secret: 1), "a made-up name does not match another")
        for number in [50, 40, 30, 20, 10] as [UInt64] { add(1, number) }
        #expect(mayHaveRun(1, 50, call: 100) && mayHaveRun(1, 30) && mayHaveRun(1, 10))
        #expect(!mayHaveRun(1, 51))
    }

    @Test("nodes beyond the limit share a watermark, which holds for unknown nodes too")
    mutating func manyNodes() {
        // Three names are known, so the watermarks are those of nodes 1 to 4.
        for node in 1...7 as ClosedRange<UInt64> { add(node, node * 100) }
        #expect(calls.watermarkCount == (2, 0))
        for node in 1...7 as ClosedRange<UInt64> {
            #expect(mayHaveRun(node, node * 100), "\(node)")
            // The shared watermark is that of node 2.
            #expect(mayHaveRun(node, 200, call: 1_000), "\(node)")
        }
        #expect(mayHaveRun(4, 400) && !mayHaveRun(4, 401) && !mayHaveRun(5, 499) && !mayHaveRun(9, 201))
    }

    @Test("a name that has not arrived from its node counts for the scope of its caller, and for no other caller")
    mutating func inventedNames() {
        for number in 0..<10 as Range<UInt64> { add(1, .max - number, of: 7, isVerified: false) }
        #expect(mayHaveRun(1, 5, of: 7) && mayHaveRun(2, 5, of: 7))
        #expect(!mayHaveRun(1, 5, of: 1) && !mayHaveRun(1, 5, of: 8))
        #expect(calls.watermarkCount == (0, 1))
        // Real names of the same node are remembered for everyone.
        for number in 1...4 as ClosedRange<UInt64> { add(1, number) }
        #expect(mayHaveRun(1, 1, of: 1) && mayHaveRun(1, 1, of: 8) && !mayHaveRun(1, 5, of: 8))
    }

    @Test("invented names with large numbers refuse the late repeats of no other caller", arguments: [1, 1_000])
    func attack(attackers: UInt64) {
        var calls = ForgottenCallWatermarks()
        func name(_ number: UInt64) -> QualifiedCallSessionID {
            QualifiedCallSessionID(instance: 1, number: number, secret: number)
        }
        for attacker in 1...attackers {
            calls.insert(name(.max - attacker), upTo: 1, of: .host(attacker), isVerified: false)
        }
        // So many callers follow that neither their names nor their scopes are known separately.
        for host in 10_000..<221_100 as Range<UInt64> {
            calls.insert(name(host), upTo: 1, of: .host(host), isVerified: false)
        }
        let refused = (300_000..<302_000 as Range<UInt64>).count {
            calls.mayHaveRun(1, over: name(1 << 40), of: .host($0))
        }
        #expect(refused == 0)
        #expect((1...attackers).allSatisfy { calls.mayHaveRun(1, over: name(.max - $0), of: .host($0)) })
    }

    @Test("a scope evicts only names that it has claimed itself")
    mutating func shares() {
        add(1, 100)
        add(1, 5, of: 2, isVerified: false)
        for number in 200..<300 as Range<UInt64> { add(1, number, of: 7, isVerified: false) }
        #expect(mayHaveRun(1, 100, call: 9) && !mayHaveRun(1, 100, call: 10) && !mayHaveRun(1, 99))
        #expect(mayHaveRun(1, 5, call: 9, of: 2) && !mayHaveRun(1, 5, call: 10, of: 2))
        #expect(mayHaveRun(1, 299, of: 1) && mayHaveRun(1, 297, of: 7) && !mayHaveRun(1, 297, of: 1))
        #expect(calls.nameCount == 4)
    }

    @Test("a name that arrives from its node after its client has repeated it counts for the node")
    mutating func verifiedLater() {
        add(1, 6, of: 7, isVerified: false)
        add(1, 6, of: 7, isVerified: true)
        for number in 10...12 as ClosedRange<UInt64> { add(1, number) }
        #expect(mayHaveRun(1, 6, of: 1) && calls.watermarkCount == (1, 0))
    }

    @Test(
        "a call that may have run never counts as new again, and memory use is bounded",
        arguments: 0..<20 as Range<UInt64>)
    mutating func neverAgain(seed: UInt64) {
        var random = RandomSource(seed: seed)
        var known: [(node: UInt64, number: UInt64, call: UInt64, host: UInt64)] = []
        for _ in 0..<300 {
            let one = (
                node: random.next() % 5, number: 1 + random.next() % 50, call: random.next() % 9,
                host: random.next() % 4
            )
            let isVerified = random.next() % 3 > 0
            add(one.node, one.number, upTo: one.call, of: one.host, isVerified: isVerified)
            known.append(one)
            #expect(calls.nameCount <= 7 && calls.watermarkCount.nodes <= 2 && calls.watermarkCount.scopes <= 2)
            for (index, one) in known.enumerated() {
                #expect(
                    mayHaveRun(one.node, one.number, call: one.call, of: one.host),
                    "\(seed): \(index) of \(known.count)")
            }
        }
    }
}
