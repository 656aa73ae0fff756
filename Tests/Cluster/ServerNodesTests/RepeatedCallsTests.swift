import Networking
import NodeSupport
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// Repeated `@Idempotent` calls of actors whose owner is alive.
@Suite(.timeLimit(.minutes(5))) struct RepeatedCallsTests {
    private static var shortMemory: ServerLimits {
        var limits = ServerLimits()
        limits.idempotency.retention = .milliseconds(100)
        return limits
    }

    @Test("a call whose recorded response was evicted is not executed again, through whichever node it is repeated")
    func late() async throws {
        try await withNodes(["a", "b"], limits: Self.shortMemory) { nodes in
            for node in nodes {
                let till = nodes[1].names("tills")[0]
                let what = "late through \(node.member.node.name)"
                let first = try await node.textClient()
                first.callOnce(1, till, "pay(_:_:)", #"["\#(what)",0]"#)
                #expect(try #require(await first.answer(1)).contains(#""result":0"#))
                first.abort()
                #expect(
                    await eventually { recordedCallCount(at: nodes[1]) == 0 && carriedNameCount(at: nodes[1]) == 0 })
                let second = try await node.textClient()
                second.repeat(1, till, "pay(_:_:)", #"["\#(what)",0]"#, of: first.session)
                #expect(try #require(await second.answer(1)).contains("unknownOutcome"))
                #expect(PaymentLog.shared.count(what) == 1)
                // A call that certainly was not executed before is executed.
                second.repeat(2, till, "pay(_:_:)", #"["\#(what)",0]"#, of: first.session)
                if node === nodes[0] { #expect(try #require(await second.answer(2)).contains(#""result":0"#)) }
                second.abort()
            }
        }
    }

    @Test("a call that runs longer than responses are retained is not executed concurrently with itself")
    func longRunning() async throws {
        try await withNodes(["a", "b"], limits: Self.shortMemory) { nodes in
            let till = nodes[1].names("tills")[0]
            let first = try await nodes[0].textClient()
            first.callOnce(1, till, "hold(_:)", #"["long"]"#)
            #expect(await eventually { PaymentLog.shared.count("long") == 1 })
            first.abort()
            #expect(await eventually { channelCount(at: nodes[1]) == 0 })
            let second = try await nodes[0].textClient()
            second.callOnce(2, till, "pay(_:_:)", #"["beside",0]"#)
            #expect(await second.answer(2) != nil)
            #expect(await eventually { recordedCallCount(at: nodes[1]) == 1 })
            second.repeat(1, till, "hold(_:)", #"["long"]"#, of: first.session)
            PaymentLog.shared.release("long")
            #expect(await second.answer(1) != nil)
            #expect(PaymentLog.shared.count("long") == 1)
            second.abort()
        }
    }

    @Test("a call started by its owner may have run, even when the owner of its actor cannot be found any more")
    func unknownOwner() async throws {
        let (engine, what) = (MemoryEngine(), "nobody found")
        let engineRoute = FaultyEngine(engine)
        var limits = ServerLimits()
        // The time for which the owner is looked up.
        limits.calls.timeout = .milliseconds(200)
        let nodes = [try Node("a", engine, through: engineRoute, limits: limits), try Node("b", engine)]
        try await Node.with(nodes) {
            let client = try await nodes[0].textClient()
            let till = nodes[1].names("tills")[0]
            let own = #","session":"\#(client.session)","timeoutMilliseconds":50000"#
            client.call(1, till, "hold(_:)", #"["\#(what)"]"#, more: own)
            #expect(await eventually { PaymentLog.shared.count(what) == 1 })
            engineRoute.set { $0.isAway = true }
            breakChannels(nodes[0], nodes[1])
            #expect(try #require(await client.answer(1)).contains("unknownOutcome"))
            PaymentLog.shared.release(what)
            client.abort()
        }
    }

    @Test("a call that was executed before its node sent it late is not executed again by the actor's next owner")
    func sentLate() async throws {
        let engine = MemoryEngine()
        let gate = FaultyEngine(engine)
        let nodes = [try Node("a", engine, through: gate), try Node("b", engine), try Node("c", engine)]
        try await Node.with(nodes) {
            // Some of these actors move to the node where their calls wait, and the others to the third node.
            let names = nodes[1].names(12)
            var clients: [TextClient] = []
            for (number, name) in names.enumerated() {
                let first = try await nodes[0].textClient()
                gate.set { $0.holdsMessages = true }
                first.callOnce(1, name, "addOnce(_:)", "[1]")
                #expect(await eventually { gate.pausedCount > 0 })
                // Its client has abandoned it, and repeats it through another node.
                let second = try await nodes[1].textClient()
                second.repeat(1, name, "addOnce(_:)", "[1]", of: first.session)
                #expect(try #require(await second.answer(1)).contains(#""result":1"#), "\(number)")
                second.abort()
                clients.append(first)
            }
            await nodes[1].server.shutdown(drain: .zero)
            gate.set { $0.holdsMessages = false }
            for first in clients { #expect(await first.answer(1) != nil) }
            let client = try await nodes[2].client()
            for name in names { #expect(try await client.resolve(Tally.self, id: name).add(0) == 1) }
            for first in clients { first.abort() }
        }
    }

    @Test("an error thrown by a method never causes a retry of its call")
    func pretended() async throws {
        try await withNodes(["a", "b"]) { nodes in
            for node in nodes {
                let what = "pretended at \(node.member.node.name)"
                let client = try await nodes[0].client()
                let till = try client.resolve(CashRegister.self, id: node.names("tills")[0])
                let error = await #expect(throws: TrebuchetError.self) { try await till.pretend(what) }
                #expect(error?.code == .unavailable && PaymentLog.shared.count(what) == 1)
            }
        }
    }

    @Test("a call is recognized after its node channel was reopened and its client reconnected")
    func secondLine() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let till = nodes[1].names("tills")[0]
            let first = try await nodes[0].textClient()
            first.callOnce(1, till, "pay(_:_:)", #"["second line",0]"#)
            #expect(await first.answer(1) != nil)
            breakChannels(nodes[0], nodes[1])
            first.call(2, till, "length(_:)", #"["abc"]"#)
            #expect(try #require(await first.answer(2)).contains(#""result":3"#))
            first.abort()
            #expect(await eventually { channelCount(at: nodes[1]) == 0 })
            let second = try await nodes[0].textClient()
            second.repeat(1, till, "pay(_:_:)", #"["second line",0]"#, of: first.session)
            #expect(try #require(await second.answer(1)).contains(#""result":0"#))
            #expect(PaymentLog.shared.count("second line") == 1)
            second.abort()
        }
    }

    @Test("a call repeated over another channel continues under the callID on that channel when its actor moves")
    func movedBehindChannels() async throws {
        let engine = MemoryEngine()
        let gate = FaultyEngine(engine)
        let nodes = [try Node("a", engine), try Node("b", engine, through: gate)]
        try await Node.with(nodes) {
            let (names, till) = (nodes[1].names(12), nodes[1].names("tills")[0])
            let peer = try await nodes[0].textClient()
            // So that the calls have other numbers on the second channel.
            peer.call(0, till, "length(_:)", #"["abc"]"#)
            #expect(await peer.answer(0) != nil)
            gate.set { $0.hangsReads = true }
            for (number, name) in names.enumerated() { peer.callOnce(number + 1, name, "addOnce(_:)", "[1]") }
            #expect(await eventually { gate.readCount >= names.count })
            breakChannels(nodes[0], nodes[1])
            peer.call(13, till, "length(_:)", #"["abc"]"#)
            #expect(await peer.answer(13) != nil)
            let third = try Node("c", engine)
            try await third.start()
            await ownAll(nodes + [third])
            #expect(names.contains { third.owns($0) })
            gate.set { $0.hangsReads = false }
            for number in 1...names.count {
                #expect(await peer.answer(number)?.contains(#""result":1"#) == true, "\(number)")
            }
            peer.abort()
            await third.stop()
        }
    }

    @Test("a reopened channel carries such calls while the owner has not closed the previous one")
    func recreatedChannel() async throws {
        let engine = MemoryEngine()
        let gate = FaultyEngine(engine)
        try await withNodes(["a", "b"], engine: engine, through: gate) { nodes in
            let tills = nodes[1].names("tills", 8)
            let (peer, direct) = (try await nodes[0].textClient(), try await nodes[1].textClient())
            peer.call(1, tills[0], "length(_:)", #"["a"]"#)
            #expect(await peer.answer(1) != nil)
            gate.set { $0.holdsMessages = true }
            breakChannels(nodes[0], nodes[1])
            peer.call(2, tills[0], "length(_:)", #"["a"]"#)
            #expect(await eventually { channelCount(at: nodes[0]) == 1 })
            // Keeps its reactors busy for a while.
            for (number, till) in tills.enumerated() { direct.call(number, till, "burn(_:_:)", #"["anew",50]"#) }
            #expect(await eventually { PaymentLog.shared.count("anew") > 0 })
            gate.set { $0.holdsMessages = false }
            for callID in 3...5 {
                peer.callOnce(callID, tills[0], "pay(_:_:)", #"["after",\#(callID)]"#)
                #expect(try #require(await peer.answer(callID)).contains(#""result":\#(callID)"#))
            }
            peer.abort()
            direct.abort()
        }
    }

    @Test("repeats with forged session IDs leave no state, and a call under an ID of this node is not executed")
    func inventedSession() async throws {
        try await withNodes(["a"]) { nodes in
            let peer = try await nodes[0].textClient()
            for callID in 0..<100 {
                peer.repeat(callID, "tills/a", "pay(_:_:)", "[]", of: "\(callID).\(callID).a")
            }
            for callID in 0..<100 {
                #expect(try #require(await peer.answer(callID)).contains("invalidArguments"))
            }
            #expect(carriedNameCount(at: nodes[0]) == 0)
            let own = peer.session.split(separator: ".")
            for (callID, session) in ["\(own[0]).1.1", "legit.one", "1.2.!"].enumerated() {
                peer.repeat(200 + callID, "tills/a", "pay(_:_:)", #"["made up",0]"#, of: session)
                #expect(try #require(await peer.answer(200 + callID)).contains("unknownOutcome"))
            }
            #expect(PaymentLog.shared.count("made up") == 0)
            peer.abort()
        }
    }

    @Test("repeats with forged session IDs count towards the quota of their caller and do not affect other callers")
    func madeUpShares() async throws {
        var limits = ServerLimits()
        limits.idempotency.perPrincipal = 5
        let isOther = Flag()
        let access = AccessPolicy(authenticate: { _ in Principal(id: isOther.isSet ? "bob" : "ada") })
        try await withNodes(["a"], access: access, limits: limits) { nodes in
            let ada = try await nodes[0].textClient()
            isOther.set()
            let bob = try await nodes[0].textClient()
            var results = 0
            for callID in 1...10 {
                ada.repeat(callID, "tills/a", "pay(_:_:)", #"["shares",1]"#, of: "1.\(callID).1")
                let answer = try #require(await ada.answer(callID))
                #expect(answer.contains(#""result":1"#) || answer.contains("idempotency.perPrincipal)"))
                results += answer.contains("result") ? 1 : 0
            }
            #expect(results == 5 && carriedNameCount(at: nodes[0]) == 5)
            bob.repeat(1, "tills/a", "pay(_:_:)", #"["shares",1]"#, of: "2.1.1")
            #expect(try #require(await bob.answer(1)).contains(#""result":1"#))
            ada.abort()
            bob.abort()
        }
    }

    @Test("a call is the same one however its names are escaped, when its node repeats it and when its client does")
    func escapedNames() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let till = nodes[1].names("tills")[0]
            let escaped = till.replacing("/", with: #"\/"#)
            let first = try await nodes[0].textClient()
            first.callOnce(1, escaped, #"hold(\u005f:)"#, #"["escaped"]"#)
            #expect(await eventually { PaymentLog.shared.count("escaped") == 1 })
            breakChannels(nodes[0], nodes[1])
            // By then its node has repeated the call.
            #expect(await eventually { channelCount(at: nodes[0]) == 1 && channelCount(at: nodes[1]) == 1 })
            PaymentLog.shared.release("escaped")
            #expect(try #require(await first.answer(1)).contains(#""result":"escaped""#))
            first.abort()
            for (node, name) in [(0, till), (0, escaped), (1, till), (1, escaped)] {
                let second = try await nodes[node].textClient()
                second.repeat(1, name, "hold(_:)", #"["escaped"]"#, of: first.session)
                #expect(try #require(await second.answer(1)).contains(#""result":"escaped""#))
                second.abort()
            }
            #expect(PaymentLog.shared.count("escaped") == 1)
        }
    }

    @Test(
        "a call recorded in an actor's log is answered, although its new owner has evicted later calls",
        arguments: [false, true])
    func answeredBeforeMoving(isItsOwn: Bool) async throws {
        let engine = MemoryEngine()
        let (a, b) = (try Node("a", engine), try Node("b", engine, limits: Self.shortMemory))
        let nodes = [a, b]
        for node in nodes { try await node.start() }
        await ownAll(nodes)
        let (here, there, till) = (a.names("tallies")[0], b.names("tallies")[0], b.names("tills")[0])
        // A client of a, with a channel to b without recorded calls.
        let first = try await a.textClient()
        first.call(1, there, "refuse()", "[]")
        #expect(await first.answer(1) != nil)
        first.callOnce(2, here, "addOnce(_:)", "[5]")
        #expect(try #require(await first.answer(2)).contains(#""result":5"#))
        // Later calls of other clients to b, on all of its reactors, are evicted there; or a later call of the first client is.
        for number in 0..<(isItsOwn ? 1 : 8) {
            let other = try await a.textClient()
            let later = isItsOwn ? first : other
            later.callOnce(3, till, "pay(_:_:)", #"["forgotten \#(isItsOwn)",\#(number)]"#)
            #expect(try #require(await later.answer(3)).contains(#""result":\#(number)"#))
            other.abort()
        }
        #expect(await eventually { recordedCallCount(at: b) == 0 && carriedNameCount(at: b) == 1 })
        await a.member.drain()
        #expect(await eventually { b.member.slotCount == ClusterSlot.count })
        let second = try await b.textClient()
        second.repeat(2, here, "addOnce(_:)", "[5]", of: first.session)
        let answer = try #require(await second.answer(2))
        #expect(answer.contains(#""result":5"#), "\(answer)")
        // For a call without a log entry the outcome is unknown.
        if isItsOwn {
            second.repeat(1, till, "pay(_:_:)", #"["forgotten \#(isItsOwn)",1]"#, of: first.session)
            let answer = try #require(await second.answer(1))
            #expect(answer.contains("unknownOutcome"), "\(answer)")
        }
        for client in [first, second] { client.abort() }
        for node in nodes { await node.stop() }
    }

    private func breakChannels(_ one: Node, _ other: Node) {
        one.server.context.nodes?.exchange.closeLostChannels(of: other.member.node)
    }
    private func channelCount(at node: Node) -> Int { node.server.context.nodes?.exchange.channelCount ?? 0 }
    private func recordedCallCount(at node: Node) -> Int { node.server.context.idempotencyCache.count }
    private func carriedNameCount(at node: Node) -> Int { node.server.context.idempotencyCache.names.carried.count }
}
