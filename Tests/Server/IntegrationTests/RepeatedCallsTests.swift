import Networking
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting
import WebSockets

/// Calls of `@Idempotent` methods over connections that break.
@Suite(.timeLimit(.minutes(5))) struct RepeatedCallsTests {
    /// A board on each of two reactors, and a client behind a link.
    private struct Scene {
        let server: TrebuchetServer
        let address: SocketAddress
        let link: FaultyLink
        let client: TrebuchetClient
        let board: SizedStateActor
        let journal = Journal()

        init(
            reactors: Int = 2, limits: ServerLimits = ServerLimits(), access: AccessPolicy = .open,
            _ change: (inout TrebuchetClient.Options) -> Void = { _ in }
        ) async throws {
            server = TrebuchetServer(
                transport: .webSocket(host: "127.0.0.1", port: 0), reactors: reactors, limits: limits, access: access)
            for name in ["board", "other"] {
                await server.expose(SizedStateActor(journal: journal, actorSystem: server.actorSystem), as: name)
            }
            address = try await server.start()
            link = try FaultyLink(to: address, seed: 1)
            client = RepeatedCallsTests.client(to: link.address, change)
            board = try client.resolve(SizedStateActor.self, id: "board")
        }

        /// Two connections on different reactors of the server.
        func distantPeers() async throws -> (RawPeer, RawPeer) {
            let first = try await RawPeer.connect(address)
            while true {
                let second = try await RawPeer.connect(address)
                if second.reactorIndex != first.reactorIndex { return (first, second) }
                second.close()
            }
        }

        func end() async {
            await client.close()
            await link.close()
            await server.shutdown(drain: .zero)
        }
    }

    private static func client(
        to address: SocketAddress, _ change: (inout TrebuchetClient.Options) -> Void = { _ in }
    ) -> TrebuchetClient {
        var options = TrebuchetClient.Options()
        options.reconnect.initialDelay = .milliseconds(5)
        options.reconnect.maximumDelay = .milliseconds(50)
        change(&options)
        return TrebuchetClient(transport: .webSocket(host: address.host, port: address.port), options: options)
    }

    private static let cuts = [FaultyLink.Cut.inOrder, .reset, .halfOpen(.seconds(30)), .late(.milliseconds(20))]

    /// The number of increments of the board.
    private static func count(at peer: RawPeer) async throws -> Int {
        peer.invoke("count", "board", "observeState")
        while let message = try await peer.next() {
            guard let state = message.payload.data else { continue }
            if let streamID = message.payload.streamID {
                peer.send(#"{"type":"streamEnd","payload":{"streamID":"\#(streamID)","reason":"clientUnsubscribed"}}"#)
            }
            return state.count
        }
        return -1
    }

    /// The result of the next response, ignoring other messages.
    private static func answer(at peer: RawPeer) async throws -> Int? {
        while let message = try await peer.next() {
            if message.type == "response" { return message.payload.result }
        }
        return nil
    }

    // MARK: A client

    @Test("a call whose response was lost is answered over the next connection", arguments: cuts)
    func lostAnswer(cut: FaultyLink.Cut) async throws {
        let scene = try await Scene()
        try await scene.client.connect()
        let call = Task { try await scene.board.countOnce("a") }
        await scene.journal.wait(for: "a began")
        try await scene.link.refuseConnections {
            await scene.link.disconnectAll(cut)
            scene.journal.record("a go")
            await scene.journal.wait { $0.count >= 3 }
        }
        #expect(try await call.value == 1)
        #expect(scene.journal.entries == ["a began", "a go", "a went on"])
        #expect(try await scene.board.addOnce() == 2)
        await scene.end()
    }

    @Test("a call that still runs when it is repeated continues, and answers over the new connection", arguments: cuts)
    func stillRuns(cut: FaultyLink.Cut) async throws {
        let scene = try await Scene()
        try await scene.client.connect()
        let call = Task { try await scene.board.countOnce("a") }
        await scene.journal.wait(for: "a began")
        for _ in 0..<3 {
            let accepted = scene.link.counters.accepted
            await scene.link.disconnectAll(cut)
            #expect(await eventually { scene.link.counters.accepted > accepted })
            // A call sent after the repeat: its response implies that the repeat has arrived.
            _ = try await scene.board.same(1)
        }
        scene.journal.record("a go")
        #expect(try await call.value == 1)
        #expect(scene.journal.entries == ["a began", "a go", "a went on"])
        await scene.end()
    }

    @Test("calls that are lost, or whose responses are lost, run once", arguments: cuts)
    func manyCuts(cut: FaultyLink.Cut) async throws {
        let scene = try await Scene()
        try await scene.client.connect()
        for number in 1...20 {
            await scene.link.pauseTraffic()
            let call = Task { try await scene.board.addOnce() }
            let other = Task { try await scene.board.same(number) }
            if number.isMultiple(of: 2) {
                let accepted = scene.link.counters.accepted
                await scene.link.disconnectAll(cut)
                #expect(await eventually { scene.link.counters.accepted > accepted })
            }
            await scene.link.resumeTraffic()
            #expect(try await call.value == number)
            _ = await other.result
        }
        await scene.end()
    }

    @Test("a call that was cancelled or timed out is not repeated")
    func cancelled() async throws {
        let scene = try await Scene()
        try await scene.client.connect()
        let cancelled = Task { try await scene.board.countOnce("a") }
        let late = Task { try await withDeadline(.seconds(3)) { try await scene.board.countOnce("b") } }
        await scene.journal.wait { Set($0).isSuperset(of: ["a began", "b began"]) }
        try await scene.link.refuseConnections {
            await scene.link.disconnectAll()
            cancelled.cancel()
            await #expect(throws: CancellationError.self) { try await cancelled.value }
            let error = await #expect(throws: TrebuchetError.self) { try await late.value }
            #expect(error?.code == .timeout)
            #expect(error?.message.contains("no response") == true)
        }
        // The first one may still use the connection that was cut.
        #expect(await eventually { (try? await scene.board.same(1)) == 1 })
        #expect(scene.journal.entries.filter { $0.hasSuffix("began") }.count == 2)
        for name in ["a", "b"] { scene.journal.record("\(name) go") }
        await scene.end()
    }

    @Test(
        "a call that waits for its repeat ends as unknownOutcome when there is no further connection",
        arguments: [true, false])
    func noConnection(closes: Bool) async throws {
        let scene = try await Scene { if !closes { $0.reconnect.maximumAttempts = 1 } }
        try await scene.client.connect()
        let call = Task { try await scene.board.countOnce("a") }
        await scene.journal.wait(for: "a began")
        let error = try await scene.link.refuseConnections {
            await scene.link.disconnectAll()
            if closes {
                for await state in scene.client.connectionState.stream where state != .connected { break }
                await scene.client.close()
            }
            return await #expect(throws: TrebuchetError.self) { try await call.value }
        }
        #expect(error?.code == .unknownOutcome)
        scene.journal.record("a go")
        await scene.end()
    }

    @Test("a restarted server does not repeat a call that its predecessor may have run")
    func newServer() async throws {
        let scene = try await Scene()
        try await scene.client.connect()
        let call = Task { try await scene.board.countOnce("a") }
        await scene.journal.wait(for: "a began")
        let port = scene.server.address?.port ?? 0
        await scene.link.pauseTraffic()
        await scene.server.shutdown(drain: .zero)
        let second = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: port))
        await second.expose(SizedStateActor(journal: scene.journal, actorSystem: second.actorSystem), as: "board")
        try await second.start()
        await scene.link.disconnectAll()
        await scene.link.resumeTraffic()
        let error = await #expect(throws: TrebuchetError.self) { try await call.value }
        #expect(error?.code == .unknownOutcome)
        #expect(scene.journal.entries.filter { $0 == "a began" }.count == 1)
        #expect(try await scene.board.addOnce() == 1)
        scene.journal.record("a go")
        await scene.end()
        await second.shutdown(drain: .zero)
    }

    // MARK: The protocol

    @Test("a server that was killed and restarted answers a repeat with unknownOutcome")
    func killedServer() async throws {
        let port = Int.random(in: 20_000..<30_000)
        let address = try #require(SocketAddress(literal: "127.0.0.1", port: port))
        let first = try ChildProcess(ServeProcess.tool, ["serve", "--examples", "--port", "\(port)"])
        try #require(await first.nextLine()?.contains("\(port)") == true)
        let peer = try await RawPeer.connect(address)
        let session = peer.session
        peer.call("1", "todos", "addTodo(title:)", #"["Milk"]"#)
        #expect(await peer.nextText()?.contains("Milk") == true)
        first.signal(9)
        _ = await first.finish()
        let second = try ChildProcess(ServeProcess.tool, ["serve", "--examples", "--port", "\(port)"])
        try #require(await second.nextLine()?.contains("\(port)") == true)
        let next = try await RawPeer.connect(address)
        next.call("1", "todos", "addTodo(title:)", #"["Milk"]"#, of: session)
        let error = try #require(await next.next()?.payload.error)
        #expect(error.code == "unknownOutcome")
        #expect(error.message.contains("an earlier server process"), "\(error.message)")
        #expect(error.message.contains("check its effects"), "\(error.message)")
        #expect(!error.message.contains("session"), "\(error.message)")
        next.invoke("a", "todos", "observeState")
        _ = await next.nextText()
        #expect(await next.nextText()?.contains(#""todos":[]"#) == true)
        next.close()
        second.signal(15)
        _ = await second.finish()
    }

    @Test("a repeat on another reactor gets the response, also while the first call is still running there")
    func otherReactor() async throws {
        let scene = try await Scene()
        for board in ["board", "other"] {
            let (first, second) = try await scene.distantPeers()
            first.call("1", board, "addOnce()")
            #expect(try await first.next()?.payload.result == 1)
            second.call("1", board, "addOnce()", of: first.session)
            #expect(try await second.next()?.payload.result == 1)
            first.abort()
            second.close()
            let (third, fourth) = try await scene.distantPeers()
            third.call("1", board, "countOnce(_:)", #"["\#(board)"]"#)
            await scene.journal.wait(for: "\(board) began")
            fourth.call("1", board, "countOnce(_:)", #"["\#(board)"]"#, of: third.session)
            #expect(await third.nextText() == nil, "the client no longer uses that connection")
            scene.journal.record("\(board) go")
            #expect(try await fourth.next()?.payload.result == 2)
            #expect(scene.journal.entries.filter { $0 == "\(board) began" }.count == 1)
            #expect(scene.journal.entries.contains("\(board) went on"), "the end of its connection did not cancel it")
            fourth.close()
        }
        await scene.end()
    }

    @Test("a repeat whose first message was lost runs, and a late first message does not")
    func lostFirstMessage() async throws {
        let scene = try await Scene()
        for _ in 0..<4 {
            let first = try await RawPeer.connect(scene.address)
            let second = try await RawPeer.connect(scene.address)
            let before = try await Self.count(at: second)
            second.call("7", "board", "addOnce()", of: first.session)
            first.call("7", "board", "addOnce()")
            #expect(try await Self.answer(at: second) == before + 1)
            // The first connection's call has arrived by now or never will.
            while await first.nextText() != nil {}
            #expect(try await Self.count(at: second) == before + 1)
            second.close()
        }
        await scene.end()
    }

    @Test("another principal gets no response under the name of a call, and closes no other connection")
    func principals() async throws {
        let keys = AccessPolicy.apiKeys(["ada-key": Principal(id: "ada"), "bob-key": Principal(id: "bob")])
        let scene = try await Scene(access: AccessPolicy(authenticate: keys))
        let ada = try await RawPeer.connect(scene.address, headers: ["Authorization": "Bearer ada-key"])
        let bob = try await RawPeer.connect(scene.address, headers: ["Authorization": "Bearer bob-key"])
        ada.call("1", "board", "addOnce()")
        #expect(try await ada.next()?.payload.result == 1)
        bob.call("1", "board", "addOnce()", of: ada.session)
        #expect(try await bob.next()?.payload.error?.code == "unknownOutcome")
        ada.call("2", "board", "addOnce()")
        #expect(try await ada.next()?.payload.result == 2, "the connection is still open, and nothing ran")
        let again = try await RawPeer.connect(scene.address, headers: ["Authorization": "Bearer ada-key"])
        again.call("1", "board", "addOnce()", of: ada.session)
        #expect(try await again.next()?.payload.result == 1)
        bob.close()
        again.close()
        await scene.end()
    }

    @Test("a repeat that differs from its first call is rejected")
    func refusals() async throws {
        let scene = try await Scene()
        let first = try await RawPeer.connect(scene.address)
        first.call("1", "board", "addOnce()")
        #expect(try await first.next()?.payload.result == 1)
        let session = first.session
        let peer = try await RawPeer.connect(scene.address)
        func code() async throws -> String? { try await peer.next()?.payload.error?.code }
        peer.call("1", "other", "addOnce()", of: session)
        #expect(try await code() == "invalidArguments")
        peer.call("1", "board", "countOnce(_:)", #"["a"]"#, of: session)
        #expect(try await code() == "invalidArguments")
        peer.call("1", "board", "addOnce()", "[1]", of: session)
        #expect(try await code() == "invalidArguments")
        peer.call("2", "board", "add()", of: session)
        #expect(try await code() == "unknownOutcome", "it is not marked")
        peer.call("3", "nobody", "addOnce()", of: session)
        #expect(try await code() == "unknownOutcome", "its actor may have existed")
        peer.call("x", "board", "addOnce()", of: session)
        #expect(try await code() == "invalidArguments", "it is not a number")
        peer.call("4", "board", "addOnce()", of: "1.2.3")
        #expect(try await code() == "unknownOutcome", "the name belongs to another server")
        peer.send(
            #"{"type":"invocation","payload":{"callID":"5","actorID":"board","targetIdentifier":"addOnce()","#
                + #""arguments":[],"session":"\#(session)"}}"#)
        #expect(try await code() == "invalidArguments", "over another connection the call is a repeat")
        #expect(try await Self.count(at: peer) == 1, "none of them runs")
        peer.close()
        await scene.end()
    }

    @Test("responses are recorded for their time, then removed, and a later repeat does not run")
    func time() async throws {
        var limits = ServerLimits()
        limits.idempotency.retention = .milliseconds(30)
        let scene = try await Scene(limits: limits)
        let first = try await RawPeer.connect(scene.address)
        first.call("1", "board", "addOnce()")
        #expect(try await first.next()?.payload.result == 1)
        #expect(await eventually { scene.server.rememberedAnswerCount == 0 })
        let second = try await RawPeer.connect(scene.address)
        second.call("1", "board", "addOnce()", of: first.session)
        #expect(try await second.next()?.payload.error?.code == "unknownOutcome")
        #expect(try await Self.count(at: second) == 1)
        second.close()
        await scene.end()
    }

    @Test("a repeat under a forged connection name is rejected, and uses no memory")
    func forgedSession() async throws {
        let scene = try await Scene()
        let peer = try await RawPeer.connect(scene.address)
        let parts = peer.session.split(separator: ".").map(String.init)
        for number in 1...50 {
            let secret = String(UInt64.random(in: 0 ... .max), radix: 36)
            peer.call("\(number)", "board", "addOnce()", of: "\(parts[0]).\(parts[1]).\(secret)")
            #expect(try await peer.next()?.payload.error?.code == "unknownOutcome")
        }
        #expect(scene.server.rememberedAnswerCount == 0)
        #expect(try await Self.count(at: peer) == 0)
        peer.close()
        await scene.end()
    }

    @Test("when the idempotency cache is full, further calls are rejected and none is removed")
    func limits() async throws {
        var limits = ServerLimits()
        limits.idempotency.total = 3
        limits.idempotency.perConnection = 2
        let scene = try await Scene(limits: limits)
        let first = try await RawPeer.connect(scene.address)
        let second = try await RawPeer.connect(scene.address)
        for (peer, number, expected) in [
            (first, 1, 1), (first, 2, 2), (first, 3, nil), (second, 1, 3), (second, 2, nil),
        ] {
            peer.call("\(number)", "board", "addOnce()")
            let payload = try #require(await peer.next()).payload
            #expect(payload.result == expected)
            #expect(payload.error?.code == (expected == nil ? "rateLimited" : nil))
        }
        second.call("1", "board", "addOnce()", of: first.session)
        #expect(try await second.next()?.payload.result == 1)
        second.call("3", "board", "addOnce()", of: first.session)
        let refusal = try #require(await second.next()?.payload.error)
        #expect(refusal.code == "unknownOutcome", "the first attempt may have been executed, or may still arrive")
        #expect(refusal.message.contains("rateLimited"))
        second.invoke("free", "board", "addOnce()")
        #expect(try await second.next()?.payload.result == 4, "a call without a recorded response is not rejected")
        second.close()
        await scene.end()
    }
}
