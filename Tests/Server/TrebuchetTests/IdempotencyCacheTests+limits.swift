import Networking
import TestSupport
import Testing
import WebSockets

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// Memory quotas, their owners and their cost.
extension IdempotencyCacheTests {
    @Test("each party has a memory quota, and each limit has an error that names it")
    mutating func parties() {
        let cases: [((inout ServerLimits) -> Void, [Step])] = [
            (
                { $0.idempotency.perPrincipal = 2 },
                [
                    Step(1, "ada", nil), Step(2, "ada", nil), Step(3, "ada", nil, "idempotency.perPrincipal"),
                    Step(1, "ada", nil, "idempotency.perPrincipal"), Step(4, "bob", nil),
                ]
            ),
            (
                { $0.idempotency.perHost = 2 },
                [
                    Step(1, nil, "192.0.2.1"), Step(2, "ada", "192.0.2.1"),
                    Step(3, "bob", "192.0.2.1", "idempotency.perHost"),
                    Step(4, "bob", "192.0.2.2"),
                ]
            ),
            (
                { $0.idempotency.perHost = 1 },
                [
                    Step(1, nil, "2001:db8:1:2::3"), Step(2, nil, "2001:db8:1:2:ffff::", "idempotency.perHost"),
                    Step(3, nil, "2001:db8:1:3::3"),
                ]
            ),
            (
                {
                    $0.idempotency.perPrincipal = 2
                    $0.idempotency.perHost = 1
                },
                [
                    Step(1, "ada", "192.0.2.1"), Step(1, "ada", "192.0.2.1", "idempotency.perHost"),
                    Step(2, "ada", nil),
                    Step(3, "ada", nil, "idempotency.perPrincipal"),
                ]
            ),
            (
                { $0.idempotency.perHost = 1 },
                [Step(1, nil, "127.0.0.1"), Step(2, nil, "127.0.0.1"), Step(3, nil, "::1")]
            ),
            (
                { $0.idempotency.bytesPerConnection = 300 },
                [Step(1, nil, nil), Step(1, nil, nil, "idempotency.bytesPerConnection"), Step(2, nil, nil)]
            ),
            (
                { $0.idempotency.bytesPerPrincipal = 300 },
                [
                    Step(1, "ada", nil), Step(2, "ada", nil, "idempotency.bytesPerPrincipal"), Step(3, "bob", nil),
                    Step(4, nil, nil),
                ]
            ),
            (
                { $0.idempotency.bytesPerHost = 300 },
                [
                    Step(1, "ada", "192.0.2.1"), Step(2, "bob", "192.0.2.1", "idempotency.bytesPerHost"),
                    Step(3, "bob", "192.0.2.2"),
                ]
            ),
            (
                { $0.idempotency.totalBytes = 600 },
                [Step(1, nil, nil), Step(2, nil, nil), Step(3, nil, nil, "idempotency.totalBytes")]
            ),
            (
                { $0.idempotency.total = 1 },
                [
                    Step(1, "ada", "192.0.2.1"), Step(2, "bob", "192.0.2.2", "idempotency.total"),
                    Step(3, "ada", nil, "idempotency.total"),
                ]
            ),
        ]
        for (change, steps) in cases {
            (memory, quotas) = Self.memory(change)
            var begun: [CallSessionID] = []
            for (number, step) in zip(1 as UInt64..<100, steps) {
                let name = CallSessionID(number: step.connection, secret: 0)
                let outcome = recordCall(name, number, by: step.principal, from: step.host)
                #expect(outcome == step.outcome, "step \(number)")
                if outcome == "run" { begun.append(name) }
                if outcome == "run" { recordResponse(name, number) }
            }
            // The reservation of a call that was rejected later has been released.
            for name in begun { memory.close(name) }
            memory.removeExpired(at: 100)
            #expect((memory.count, memory.bytes, memory.connectionCount) == (0, 0, 0))
            #expect((quotas.count(.recordedResponses), quotas.count(.recordedResponseBytes)) == (0, 0))
            #expect(quotas.scopeCount == 0, "no quota is in use")
        }
    }

    @Test("a large response does not exceed its connection's byte quota")
    mutating func shareOfBytes() {
        (memory, quotas) = Self.memory {
            $0.idempotency.totalBytes = 1 << 20
            $0.idempotency.bytesPerConnection = 1_000
        }
        #expect(recordCall(Self.first, 1) == "run")
        recordResponse(Self.first, 1, String(repeating: "x", count: 900))
        #expect(recordCall(Self.first, 1, again: true) == "unknownOutcome")
        #expect(memory.bytes <= 1_000)
    }

    @Test("when responses arrive out of call order, an evicted call does not run again")
    mutating func otherOrder() {
        #expect(recordCall(Self.first, 1) == "run")
        #expect(recordCall(Self.first, 2) == "run")
        recordResponse(Self.first, 2, at: 0)
        recordResponse(Self.first, 1, at: 50)
        memory.removeExpired(at: 1_000)
        #expect(memory.count == 0)
        for number in [1, 2] as [UInt64] {
            #expect(recordCall(Self.first, number, again: true, at: 1_000) == "refused: unknownOutcome")
        }
        #expect(recordCall(Self.first, 3, again: true, at: 1_000) == "run")
    }

    @Test("a call costs the same with a thousand recorded responses as with twenty thousand")
    mutating func cost() {
        (memory, quotas) = Self.memory {
            $0.idempotency.total = .max
            $0.idempotency.perConnection = .max
            $0.idempotency.totalBytes = .max
            $0.idempotency.bytesPerConnection = .max
        }
        var number: UInt64 = 0
        /// The processor time of this thread for 200 calls more; the best of several rounds.
        func time(keeping count: Int, _ memory: inout Memory) -> UInt64 {
            let request = Memory.Request(digest: 1, principal: "ada", isRepeat: false)
            func call() {
                number += 1
                let name = Memory.Name(connection: Self.first, number: number)
                _ = memory.recordCall(name, request, "a", at: 0)
                _ = memory.recordResponse(name, .success([1]), at: 0)
            }
            while memory.count < count { call() }
            return (0..<20).map { _ in
                let start = ProcessorTime.ofThread
                for _ in 0..<200 { call() }
                return ProcessorTime.ofThread - start
            }.min() ?? 0
        }
        let few = time(keeping: 1_000, &memory)
        let many = time(keeping: 20_000, &memory)
        #expect(many < 5 * few, "\(few) ns and \(many) ns")
    }

    @Test("many expired responses are removed in small steps, and the result says when more remain")
    mutating func littleByLittle() {
        (memory, quotas) = Self.memory {
            $0.idempotency.total = 1_000
            $0.idempotency.perConnection = 1_000
            $0.idempotency.totalBytes = .max
        }
        for number in 1...100 as ClosedRange<UInt64> {
            #expect(recordCall(Self.first, number) == "run")
            recordResponse(Self.first, number, at: number < 100 ? 0 : 40)
        }
        #expect(memory.removeExpired(at: 0) == 100)
        #expect(memory.removeExpired(at: 100, atMost: 30) == 0)
        #expect(memory.count == 70)
        #expect(memory.removeExpired(at: 100, atMost: 1_000) == 40)
        #expect(memory.removeExpired(at: 140) == nil)
        for number in 101...140 as ClosedRange<UInt64> {
            #expect(recordCall(Self.first, number, at: 200) == "run")
            recordResponse(Self.first, number, at: 200)
        }
        #expect(recordCall(Self.first, 141, at: 400) == "run")
        #expect((2...40).contains(memory.count), "a call removes some of the expired responses, not all")
    }

    @Test("a response over the size limit is not recorded, but the completion of its call is")
    mutating func largeAnswer() {
        #expect(recordCall(Self.first, 1, "a") == "run")
        let name = Memory.Name(connection: Self.first, number: 1)
        #expect(memory.recordResponse(name, .success(Array(repeating: 1, count: 5_000)), at: 0) == ["a"])
        #expect(memory.bytes <= 2_000)
        #expect(recordCall(Self.first, 1, again: true) == "unknownOutcome")
    }

    @Test("bytes are released when responses are removed")
    mutating func bytesComeBack() {
        for round in 0..<1_000 as Range<UInt64> {
            #expect(recordCall(Self.first, round, at: round * 200) == "run")
            recordResponse(Self.first, round, String(repeating: "x", count: 1_500), at: round * 200)
        }
        memory.removeExpired(at: .max)
        #expect((memory.count, memory.bytes) == (0, 0))
    }

    @Test("names are parsed as they were formatted, and names of another server are rejected")
    func names() throws {
        let names = CallSessionRegistry(reactors: 3)
        let name = names.next(onReactor: 2)
        #expect(names.next(onReactor: 0).number > name.number)
        #expect(names.reactor(of: name) == 2)
        let text = names.text(name)
        #expect(text.utf8.count <= 64)
        #expect(names.name(text) == name)
        #expect(CallSessionRegistry(reactors: 3).name(text) == nil)
        let parts = text.split(separator: ".")
        for _ in 0..<100 {
            let forged = CallSessionID(number: name.number, secret: .random(in: 0 ... .max))
            #expect(names.name(names.text(forged)) == nil, "the secret belongs to the number")
        }
        let next = names.next(onReactor: 1)
        let mixed = CallSessionID(number: next.number, secret: name.secret)
        #expect(names.name(names.text(mixed)) == nil)
        #expect(names.name(names.text(mixed), own: name) == nil)
        #expect(names.name(text, own: next) == name && names.name(text, own: name) == name)
        for wrong in ["", text + ".1", "\(parts[0]).\(parts[1])", "\(parts[0]).zzzzzz.\(parts[2])", "\(parts[0]).é.1"] {
            #expect(names.name(wrong) == nil, "\(wrong)")
        }
    }
}
