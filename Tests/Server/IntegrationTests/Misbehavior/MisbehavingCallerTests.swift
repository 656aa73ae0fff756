import Networking
import Synchronization
import TestSupport
import Testing
import TrebuchetTesting

@testable import Trebuchet

/// Calls of malicious or faulty clients.
@Suite(.timeLimit(.minutes(5))) struct MisbehavingCallerTests {
    /// Runs `body` with a server with a lobby, and on-demand lobbies that wait for the test's signal.
    private func withLobbies(
        reactors: Int? = nil, limits: ServerLimits = ServerLimits(), access: AccessPolicy = .open,
        _ body: (RawPeer, TrebuchetServer, Journal) async throws -> Void
    ) async throws {
        let journal = Journal()
        try await withTestServer(reactors: reactors, limits: limits, access: access) { server in
            let system = server.actorSystem
            await server.expose(ActivationTestActor(journal: journal, actorSystem: system), as: "lobby")
            server.expose(ActivationTestActor.self, as: "lobbies/*") { name in
                journal.record("makes \(name)")
                await journal.wait(for: "go")
                return ActivationTestActor(journal: journal, actorSystem: system)
            }
            server.expose(ActivationTestActor.self, as: "broken/*") { name in
                journal.record("makes \(name)")
                throw ActivationTestActor.Stubborn()
            }
        } body: { _, server in
            let peer = try await RawPeer.connect(try #require(server.address))
            try await body(peer, server, journal)
            peer.close()
        }
    }

    private func message(_ peer: RawPeer) async throws -> Message.Payload { try #require(await peer.next()).payload }

    @Test(
        "a mangled name of any depth is an unknown method, and the server continues", arguments: ["lobby", "lobbies/1"])
    func deepName(actor: String) async throws {
        let deep = "$s4main1AC1fyySi" + String(repeating: "Sg", count: 45_000) + "FTE"
        let long = "$s" + String(repeating: "x", count: 200_000)
        try await withLobbies { (peer, _, journal) async throws -> Void in
            for target in [deep, long, "$s4main5LobbyC5enterSiyYaKFTE"] {
                peer.invoke("1", actor, target)
                #expect(try await message(peer).error?.code == "methodNotFound")
            }
            peer.send(
                #"{"type":"streamResume","payload":{"streamID":"s1","actorID":"\#(actor)","targetIdentifier":"\#(deep)"}}"#
            )
            #expect(try await peer.next()?.type == "streamError")
            peer.invoke("2", "lobby", "enter()")
            #expect(try await message(peer).result == 1)
            #expect(journal.entries == [])
        }
    }

    @Test("a stream of an actor whose activation fails ends with the reason, after one attempt")
    func resumeOfNothing() async throws {
        try await withLobbies { (peer, _, journal) async throws -> Void in
            for number in 1...3 {
                peer.send(
                    #"{"type":"streamResume","payload":{"streamID":"s\#(number)","actorID":"broken/1","#
                        + #""targetIdentifier":"observeVisits","epoch":"00000000","lastSequence":1}}"#)
                #expect(try await peer.next()?.type == "streamError")
                #expect(journal.entries.count == number)
            }
        }
    }

    @Test("a caller that may not observe a state may not resume its stream either, and its actor is not activated")
    func resumeWithoutPermission() async throws {
        let asked = Journal()
        try await withLobbies(access: .refusing(asked)) { (peer, _, journal) async throws -> Void in
            for actor in ["lobby", "lobbies/1"] {
                peer.send(
                    #"{"type":"streamResume","payload":{"streamID":"s1","actorID":"\#(actor)","#
                        + #""targetIdentifier":"observeVisits","epoch":"00000000","lastSequence":1}}"#)
                let answer = try #require(await peer.next())
                #expect(answer.type == "streamError")
                #expect(answer.payload.code == "unauthenticated")
            }
            #expect(asked.entries == ["lobby observeVisits", "lobbies/1 observeVisits"])
            #expect(journal.entries == [])
        }
    }

    @Test("a call that waits for its actor has its deadline")
    func deadline() async throws {
        try await withLobbies { (peer, server, journal) async throws -> Void in
            peer.send(
                #"{"type":"invocation","payload":{"callID":"1","actorID":"lobbies/1","targetIdentifier":"enter()","#
                    + #""timeoutMilliseconds":50}}"#)
            #expect(try await message(peer).error?.code == "timeout")
            journal.record("go")
            peer.invoke("2", "lobbies/1", "look()")
            #expect(try await message(peer).result == 0)
            #expect(server.bufferedBytes == 0)
        }
    }

    @Test("a client cannot set a deadline beyond the server's maximum")
    func longestDeadline() async throws {
        var limits = ServerLimits()
        limits.calls.maximumTimeout = .milliseconds(50)
        try await withLobbies(limits: limits) { (peer, _, _) async throws -> Void in
            peer.send(
                #"{"type":"invocation","payload":{"callID":"1","actorID":"lobbies/1","targetIdentifier":"enter()","#
                    + #""timeoutMilliseconds":18446744073709551615}}"#)
            #expect(try await message(peer).error?.code == "timeout")
        }
    }

    @Test("a call and a stream that wait for their actor can be cancelled, and then never run")
    func cancel() async throws {
        try await withLobbies { (peer, server, journal) async throws -> Void in
            peer.invoke("1", "lobbies/1", "enter()")
            peer.invoke("2", "lobbies/1", "observeVisits")
            for callID in ["1", "2"] {
                peer.send(#"{"type":"cancel","payload":{"callID":"\#(callID)"}}"#)
                #expect(try await message(peer).error?.code == "cancelled")
            }
            #expect(server.bufferedBytes == 0)
            journal.record("go")
            peer.invoke("3", "lobbies/1", "look()")
            #expect(try await message(peer).result == 0)
        }
    }

    @Test("an idempotent call cancelled while it waits for its actor leaves no record, and can be repeated")
    func cancelledOnce() async throws {
        try await withLobbies { (peer, server, journal) async throws -> Void in
            peer.call("1", "lobbies/1", "enterOnce()")
            peer.send(#"{"type":"cancel","payload":{"callID":"1"}}"#)
            #expect(try await message(peer).error?.code == "cancelled")
            #expect(await server.counters().callsWaiting == 0)
            let session = peer.session
            let other = try await RawPeer.connect(try #require(server.address))
            other.call("1", "lobbies/1", "enterOnce()", of: session)
            #expect(try await message(other).error?.code == "cancelled", "the outcome is known: the call never ran")
            journal.record("go")
            other.call("2", "lobbies/1", "enterOnce()")
            #expect(try await message(other).result == 1)
            other.close()
        }
    }

    @Test("calls that wait for their actor count, and so do their bytes")
    func counted() async throws {
        var limits = ServerLimits()
        limits.calls.perConnection = 3
        limits.calls.bytesPerConnection = 40_000
        try await withLobbies(limits: limits) { (peer, server, journal) async throws -> Void in
            let text = String(repeating: "a", count: 20_000)
            peer.invoke("1", "lobbies/1", "note(_:)", "[\"\(text)\"]")
            peer.invoke("2", "lobbies/1", "note(_:)", "[\"\(text)\"]")
            let tooLarge = try await message(peer).error
            #expect(tooLarge?.code == "rateLimited")
            #expect(tooLarge?.message.contains("calls.bytesPerConnection") == true)
            for callID in ["3", "4", "5"] { peer.invoke(callID, "lobbies/1", "enter()") }
            let tooMany = try await message(peer)
            #expect(tooMany.callID == "5")
            #expect(tooMany.error?.message.contains("calls.perConnection") == true)
            #expect(server.bufferedBytes > 20_000)
            peer.abort()
            #expect(await eventually { server.bufferedBytes == 0 })
            journal.record("go")
            #expect(!journal.entries.contains(text))
        }
    }

    @Test("the server's buffered memory has a limit, and existing work survives it")
    func bufferedMemory() async throws {
        var limits = ServerLimits()
        limits.memory.total = 8_000
        limits.memory.perHost = 16_000
        try await withLobbies(limits: limits) { (peer, server, journal) async throws -> Void in
            let other = try await RawPeer.connect(try #require(server.address))
            let text = String(repeating: "a", count: 1_500)
            peer.invoke("1", "lobbies/1", "note(_:)", "[\"\(text)\"]")
            #expect(await eventually { server.bufferedBytes > 1_500 })
            other.invoke("1", "lobbies/1", "note(_:)", "[\"\(text)\"]")
            #expect(try await message(other).error?.message.contains("(memory.total)") == true)
            other.invoke("2", "lobby", "enter()")
            #expect(try await message(other).result == 1)
            journal.record("go")
            #expect(try await message(peer).error == nil)
            other.close()
        }
    }

    @Test("user code does not run, activate or disclose anything for an unauthorized caller")
    func refused() async throws {
        let asked = Journal()
        try await withLobbies(access: .refusing(asked)) { (peer, server, journal) async throws -> Void in
            let calls = [
                ("lobby", "enter()"), ("lobby", "nothing()"), ("lobbies/1", "enter()"), ("lobbies/1", "nothing()"),
                ("lobbies/1", "observeVisits"), ("nobody", "enter()"), ("lobbies/1", "enterOnce()"),
            ]
            for (actor, target) in calls {
                peer.invoke("1", actor, target)
                let error = try await message(peer).error
                #expect(error?.code == "unauthenticated")
                #expect(error?.message == "'\(target)' of actor '\(actor)' is not allowed")
            }
            peer.call("1", "lobbies/1", "enterOnce()")
            #expect(try await message(peer).error?.code == "unauthenticated")
            let other = try await RawPeer.connect(try #require(server.address))
            peer.call("2", "lobbies/1", "enterOnce()", of: other.session)
            #expect(try await message(peer).error?.code == "unknownOutcome", "an earlier attempt may have been allowed")
            other.close()
            peer.send(
                #"{"type":"streamResume","payload":{"streamID":"s1","actorID":"lobbies/1","#
                    + #""targetIdentifier":"observeVisits"}}"#)
            #expect(try await peer.next()?.type == "streamError")
            #expect(journal.entries == [])
            #expect(asked.entries.count == calls.count + 3)
        }
    }

    @Test("a malformed call activates no actor")
    func wrongShape() async throws {
        try await withLobbies { (peer, _, journal) async throws -> Void in
            peer.invoke("1", "lobbies/1", "enter()", "[1]")
            #expect(try await message(peer).error?.code == "invalidArguments")
            peer.invoke("2", "lobbies/1", "nothing()")
            #expect(try await message(peer).error?.code == "methodNotFound")
            peer.invoke("3", "lobbies/" + String(repeating: "a", count: 300), "enter()")
            #expect(try await message(peer).error?.message.contains("256 bytes") == true)
            #expect(journal.entries == [])
        }
    }

    @Test("names are equal when their bytes are")
    func names() async throws {
        try await withLobbies { (peer, server, journal) async throws -> Void in
            journal.record("go")
            // é as one code point and as two.
            for name in ["lobbies/caf\u{E9}", "lobbies/cafe\u{301}"] {
                peer.invoke("1", name, "enter()")
                #expect(try await message(peer).result == 1)
            }
            #expect(server.actorCount == 3)
        }
    }

    @Test("calls that run in place are not limited, on either reactor")
    func sameOnEachReactor() async throws {
        try await withLobbies(reactors: 2) { (_, server, _) async throws -> Void in
            var seen: Set<UInt64> = []
            while seen.count < 2 {
                let peer = try await RawPeer.connect(try #require(server.address))
                if seen.insert(peer.reactorIndex ?? 0).inserted {
                    await peer.together { for number in 0..<4_000 { peer.invoke("\(number)", "lobby", "look()") } }
                    for number in 0..<4_000 {
                        let answer = try await message(peer)
                        #expect(answer.error == nil)
                        #expect(answer.callID == "\(number)")
                    }
                }
                peer.close()
            }
        }
    }

    @Test("calls from another reactor cause no more versions than those from the actor's own")
    func versionsOfATurn() async throws {
        try await withLobbies(reactors: 2) { (observer, server, _) async throws -> Void in
            observer.invoke("o", "lobby", "observeVisits")
            _ = await observer.nextText()
            var versions: [UInt64: Int] = [:]
            while versions.count < 2 {
                let peer = try await RawPeer.connect(try #require(server.address))
                if versions[peer.reactorIndex ?? 0] == nil {
                    peer.invoke("p", "lobby", "pad(_:)", "[20000]")
                    _ = await peer.nextText()
                    let before = await server.encodeCount(of: "lobby", "observeVisits")
                    await peer.together { for number in 0..<400 { peer.invoke("\(number)", "lobby", "enter()") } }
                    var answers = 0
                    while answers < 400, let text = await peer.nextText() {
                        if text.contains(#""type":"response""#) { answers += 1 }
                    }
                    versions[peer.reactorIndex ?? 0] = await server.encodeCount(of: "lobby", "observeVisits") - before
                }
                peer.close()
            }
            let home = server.directory.record(ActorName("lobby"))?.home
            let index = try #require(server.shards.firstIndex { $0.states === home })
            let own = try #require(versions[UInt64(index)])
            let crossing = try #require(versions[UInt64(1 - index)])
            #expect(crossing <= own * 2 + 16)
        }
    }

    @Test("calls over one connection keep their order across the names of an actor")
    func twoNames() async throws {
        let journal = Journal()
        try await withTestServer(reactors: 1) { server in
            let lobby = ActivationTestActor(journal: journal, actorSystem: server.actorSystem)
            await server.expose(lobby, as: "one")
            await server.expose(lobby, as: "other")
        } body: { _, server in
            let peer = try await RawPeer.connect(try #require(server.address))
            await peer.together {
                for number in 0..<20 {
                    peer.invoke("a\(number)", "one", "noteLater(_:)", "[\"\(2 * number)\"]")
                    peer.invoke("b\(number)", "other", "note(_:)", "[\"\(2 * number + 1)\"]")
                }
            }
            await journal.wait { $0.count == 40 }
            #expect(journal.entries == (0..<40).map(String.init))
            peer.close()
        }
    }

    @Test("functions that a reactor's actor awaits run on their own executors")
    func threads() async throws {
        try await withTestServer(reactors: 1) { server in
            await server.expose(ActivationTestActor(journal: Journal(), actorSystem: server.actorSystem), as: "lobby")
        } body: { client, _ in
            let threads = try await client.resolve(ActivationTestActor.self, id: "lobby").threads()
            #expect(threads.first == "reactor-0" && threads.last == "reactor-0")
            #expect(threads.dropFirst().dropLast().allSatisfy { !$0.hasPrefix("reactor") }, "\(threads)")
        }
    }

    @Test("an actor with a custom executor runs there alone")
    func ownExecutor() async throws {
        try await withTestServer(reactors: 1) { server in
            await server.expose(OwnExecutor(actorSystem: server.actorSystem), as: "own")
        } body: { client, _ in
            let own = try client.resolve(OwnExecutor.self, id: "own")
            #expect(try await own.now())
            #expect(try await own.later())
        }
    }

    @Test("an actor of a reactor outside of its server's reactors is called nevertheless")
    func foreignReactor() async throws {
        // On the second reactor of the process, at a server that has only the first one.
        let large = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2)
        let lobbies = (0..<2).map { _ in ActivationTestActor(journal: Journal(), actorSystem: large.actorSystem) }
        try await withTestServer(reactors: 1) { server in
            for (index, lobby) in lobbies.enumerated() { await server.expose(lobby, as: "lobby\(index)") }
        } body: { client, _ in
            for index in 0..<2 {
                let lobby = try client.resolve(ActivationTestActor.self, id: "lobby\(index)")
                #expect(try await lobby.enter() == 1)
            }
        }
        await large.shutdown(drain: .zero)
    }

    private func call(_ peer: RawPeer, _ number: Int) async throws -> Message.Payload {
        peer.invoke("\(number)", "lobby", "enter()")
        return try await message(peer)
    }

    @Test("a server that shuts down ends streams, and rejects the calls of clients that continue to call")
    func drain() async throws {
        try await withLobbies { (peer, server, journal) async throws -> Void in
            peer.invoke("1", "lobbies/1", "enter()")
            await journal.wait(for: "makes lobbies/1")
            let shutdown = Task { await server.shutdown(drain: .seconds(10)) }
            #expect(try await peer.next()?.type == "goAway")
            peer.invoke("2", "lobby", "observeVisits")
            #expect(try await peer.next()?.type == "streamStart")
            #expect(try await message(peer).reason == "serverDraining")
            var answer = try await call(peer, 3)
            for number in 4..<1_000_000 where answer.error == nil { answer = try await call(peer, number) }
            #expect(answer.error?.code == "unavailable")
            journal.record("go")
            #expect(try await message(peer).callID == "1")
            await shutdown.value
        }
    }

    @Test("a server that has shut down, and its actors, are freed", arguments: [true, false])
    func freed(withShutdown: Bool) async throws {
        weak var actor: ActivationTestActor?
        weak var system: TrebuchetActorSystem?
        do {
            let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
            let lobby = ActivationTestActor(journal: Journal(), actorSystem: server.actorSystem)
            await server.expose(lobby, as: "lobby")
            (actor, system) = (lobby, server.actorSystem)
            if withShutdown {
                let address = try await server.start()
                let peer = try await RawPeer.connect(address)
                peer.invoke("1", "lobby", "enter()")
                #expect(try await message(peer).result == 1)
                await server.shutdown(drain: .zero)
            }
        }
        _ = await eventually { actor == nil && system == nil }
        #expect(actor == nil)
        #expect(system == nil)
    }
}
