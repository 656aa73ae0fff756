import Networking
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Messages over the peer's size limit: their call or stream fails, and the connection continues.
@Suite(.timeLimit(.minutes(5))) struct MessageSizeTests {
    private struct Scene {
        let server: TrebuchetServer
        let link: FaultyLink
        let client: TrebuchetClient
        let hoard: PayloadEchoActor
        let journal = Journal()

        init(
            limits: ServerLimits = ServerLimits(), connects: Bool = true,
            _ change: (inout TrebuchetClient.Options) -> Void = { _ in }
        ) async throws {
            server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2, limits: limits)
            await server.expose(PayloadEchoActor(journal: journal, actorSystem: server.actorSystem), as: "hoard")
            link = try FaultyLink(to: await server.start(), seed: 1)
            var options = TrebuchetClient.Options()
            options.reconnect.initialDelay = .milliseconds(5)
            options.reconnect.maximumDelay = .milliseconds(20)
            change(&options)
            client = TrebuchetClient(
                transport: .webSocket(host: link.address.host, port: link.address.port), options: options)
            hoard = try client.resolve(PayloadEchoActor.self, id: "hoard")
            if connects { try await client.connect() }
        }

        func end() async {
            await client.close()
            await link.close()
            await server.shutdown(drain: .zero)
        }

        /// An in-flight call that must be unaffected.
        func bystander() async -> Task<Int, any Error> {
            let call = Task { try await hoard.hold("bystander") }
            await journal.wait(for: "bystander began")
            return call
        }

        func expectUnharmed(_ call: Task<Int, any Error>, connections: Int = 1) async throws {
            journal.record("bystander go")
            #expect(try await call.value == 1)
            #expect(link.counters.accepted == connections)
        }
    }

    private static let large = String(repeating: "x", count: 2 << 20)

    // MARK: To the server

    @Test("a call over the server's limit fails with both settings, and other calls do not")
    func largeCall() async throws {
        let scene = try await Scene()
        let bystander = await scene.bystander()
        for isIdempotent in [false, true] {
            let error = await #expect(throws: TrebuchetError.self) {
                _ = try await isIdempotent ? scene.hoard.takeOnce(Self.large) : scene.hoard.take(Self.large)
            }
            #expect(error?.code == .invalidArguments)
            for part in ["take", "2097", "1048576", "ServerLimits.messages.inboundBytes", "Options.serverMessageSize"] {
                #expect(error?.message.contains(part) == true, "\(error?.message ?? "")")
            }
        }
        try await scene.expectUnharmed(bystander)
        #expect(!scene.journal.entries.contains("take"))
        #expect(try await scene.hoard.take(String(repeating: "x", count: 1_000_000)) == 1_000_000)
        await scene.end()
    }

    @Test(
        "a call over which the server closes is not sent again, and others use the next connection",
        arguments: [true, false])
    func refusedCall(isIdempotent: Bool) async throws {
        var limits = ServerLimits()
        limits.messages.inboundBytes = 64 << 10
        let scene = try await Scene(limits: limits, connects: false) { $0.reconnect.retriesFirstConnection = true }
        // Calls sent before the server's limits are known wait for the connection.
        let (connecting, bystander, large) = try await scene.link.refuseConnections {
            let connecting = Task { try await scene.client.connect() }
            #expect(
                await eventually {
                    if case .connecting = scene.client.connectionState.currentValue { true } else { false }
                })
            let bystander = Task { try await scene.hoard.hold("bystander") }
            #expect(await eventually { await scene.client.waitingCallCount == 1 })
            let text = String(repeating: "x", count: 100_000)
            let large = Task {
                try await isIdempotent ? scene.hoard.takeOnce(text) : scene.hoard.take(text)
            }
            #expect(await eventually { await scene.client.waitingCallCount == 2 })
            return (connecting, bystander, large)
        }
        try await connecting.value
        let error = await #expect(throws: TrebuchetError.self) { _ = try await large.value }
        #expect(error?.code == .invalidArguments)
        #expect(error?.message.contains("closed the connection") == true, "\(error?.message ?? "")")
        #expect(error?.message.contains("ServerLimits.messages.inboundBytes") == true, "\(error?.message ?? "")")
        await scene.journal.wait(for: "bystander began")
        try await scene.expectUnharmed(bystander, connections: 2)
        #expect(!scene.journal.entries.contains("take"))
        await scene.end()
    }

    @Test("the advertised message size applies to calls and streams, and the connection stays open")
    func advertisedSize() async throws {
        var limits = ServerLimits()
        limits.messages.inboundBytes = 64 << 10
        let scene = try await Scene(limits: limits)
        // Its response follows the server's hello.
        #expect(try await scene.hoard.take("x") == 1)
        let bystander = await scene.bystander()
        let text = String(repeating: "x", count: 100_000)
        for isIdempotent in [false, true] {
            let error = await #expect(throws: TrebuchetError.self) {
                _ = try await isIdempotent ? scene.hoard.takeOnce(text) : scene.hoard.take(text)
            }
            #expect(error?.code == .invalidArguments)
            #expect(error?.message.contains("the server's limit is 65536") == true, "\(error?.message ?? "")")
        }
        let stream = try await scene.client.resolve(PayloadEchoActor.self, id: text).observePile()
        for await _ in stream {}
        guard case .failed(let error) = stream.outcome else {
            Issue.record("\(String(describing: stream.outcome))")
            return
        }
        #expect(error.code == .invalidArguments && error.message.contains("65536"), "\(error.message)")
        try await scene.expectUnharmed(bystander)
        #expect(scene.journal.entries.count { $0 == "take" } == 1)
        await scene.end()
    }

    @Test("a call over the client's own limit names that limit, whatever the server accepts", arguments: [1, 4])
    func ownLimit(serverMiB: Int) async throws {
        var limits = ServerLimits()
        limits.messages.inboundBytes = serverMiB << 20
        let scene = try await Scene(limits: limits) { $0.serverMessageSize = 1 << 16 }
        #expect(try await scene.hoard.take("x") == 1)
        for count in [65_450, 100_000] {
            for isIdempotent in [false, true] {
                let text = String(repeating: "x", count: count)
                let error = await #expect(throws: TrebuchetError.self) {
                    _ = try await isIdempotent ? scene.hoard.takeOnce(text) : scene.hoard.take(text)
                }
                #expect(error?.code == .invalidArguments)
                let message = error?.message ?? ""
                #expect(message.contains("this client's limit is 65536"), "\(message)")
                #expect(message.contains("TrebuchetClient.Options.serverMessageSize"), "\(message)")
                #expect(!message.contains("the server takes"), "\(message)")
            }
        }
        await scene.end()
    }

    @Test("a stream whose request exceeds the server's limit fails alone")
    func largeBeginning() async throws {
        let scene = try await Scene()
        let bystander = await scene.bystander()
        let stream = try await scene.client.resolve(PayloadEchoActor.self, id: Self.large).observePile()
        for await _ in stream {}
        guard case .failed(let error) = stream.outcome else {
            Issue.record("\(String(describing: stream.outcome))")
            return
        }
        #expect(error.code == .invalidArguments)
        #expect(error.message.contains("Options.serverMessageSize"), "\(error.message)")
        try await scene.expectUnharmed(bystander)
        await scene.end()
    }

    // MARK: To the client

    /// A scene with a small limit at either end; the smaller one applies.
    private func smallScene(byServer: Bool) async throws -> Scene {
        var limits = ServerLimits()
        if byServer { limits.messages.outboundBytes = 64 << 10 }
        return try await Scene(limits: limits) { if !byServer { $0.messageSize = 64 << 10 } }
    }

    @Test("a result over the client's limit fails its call alone", arguments: [true, false])
    func largeResult(byServer: Bool) async throws {
        let scene = try await smallScene(byServer: byServer)
        let bystander = await scene.bystander()
        for target in ["give(_:)", "giveLater(_:)", "giveOnce(_:)"] {
            let error = await #expect(throws: TrebuchetError.self) {
                switch target {
                case "give(_:)": _ = try await scene.hoard.give(100_000)
                case "giveLater(_:)": _ = try await scene.hoard.giveLater(100_000)
                default: _ = try await scene.hoard.giveOnce(100_000)
                }
            }
            #expect(error?.code == .internal)
            for part in ["100", "65536", "Options.messageSize"]
                + (byServer ? ["ServerLimits.messages.outboundBytes"] : [])
            {
                #expect(error?.message.contains(part) == true, "\(target): \(error?.message ?? "")")
            }
        }
        #expect(scene.journal.entries.count { $0 == "give" } == 1)
        let error = await #expect(throws: TrebuchetError.self) { try await scene.hoard.fail(100_000) }
        #expect(error?.code == .application)
        #expect(error?.data == nil)
        try await scene.expectUnharmed(bystander)
        await scene.end()
    }

    @Test("the largest result that the client accepts arrives, and one byte more does not")
    func exactResult() async throws {
        let scene = try await smallScene(byServer: false)
        // As few digits as the client's second call has.
        let head = #"{"type":"response","payload":{"callID":"2","result":""}}"#
        _ = try await scene.hoard.give(1)
        #expect(try await scene.hoard.give((64 << 10) - head.utf8.count).utf8.count == (64 << 10) - head.utf8.count)
        await #expect(throws: TrebuchetError.self) {
            _ = try await scene.hoard.give((64 << 10) - head.utf8.count + 1)
        }
        #expect(scene.link.counters.accepted == 1)
        await scene.end()
    }

    @Test("a state that outgrows its readers' limit ends their streams, and others continue", arguments: [true, false])
    func largeState(byServer: Bool) async throws {
        let scene = try await smallScene(byServer: byServer)
        let bystander = await scene.bystander()
        let small = await scene.hoard.observeSmall()
        var numbers = small.makeAsyncIterator()
        #expect(await numbers.next() == 0)
        let whole = await scene.hoard.observePile()
        var piles = whole.makeAsyncIterator()
        #expect(await piles.next()?.count == 0)
        let filtered = await scene.hoard.observePile(filter: .path("/padding"), as: String.self)
        var paddings = filtered.makeAsyncIterator()
        #expect(await paddings.next() == "")
        let parts = await scene.hoard.observePile(filter: .path("/count"), as: Int.self)
        var counts = parts.makeAsyncIterator()
        #expect(await counts.next() == 0)

        try await scene.hoard.pile(100_000)
        #expect(await piles.next() == nil)
        #expect(await paddings.next() == nil)
        // A new reader gets the error, too.
        let late = await scene.hoard.observePile()
        for await _ in late {}
        for outcome in [whole.outcome, filtered.outcome, late.outcome] {
            guard case .failed(let error) = outcome else {
                Issue.record("\(String(describing: outcome))")
                continue
            }
            #expect(error.code == .internal)
            #expect(error.message.contains("65536"), "\(error.message)")
            #expect(error.message.contains("Options.messageSize"), "\(error.message)")
        }
        #expect(await counts.next() == 1)
        #expect(await numbers.next() == 1)
        #expect(await eventually { await scene.server.subscriberCount(of: "hoard", "observePile") == 1 })

        try await scene.hoard.pile(10)
        var again = await scene.hoard.observePile().makeAsyncIterator()
        #expect(await again.next()?.count == 2)
        try await scene.expectUnharmed(bystander)
        await scene.end()
    }

    @Test("a state that small differences grow beyond the limit ends that stream, and others continue")
    func largeByPatches() async throws {
        let scene = try await smallScene(byServer: false)
        let bystander = await scene.bystander()
        let shelf = await scene.hoard.observeShelf()
        var shelves = shelf.makeAsyncIterator()
        #expect(await shelves.next() == [])
        // Each difference is far below the message limit, and the final value is above it.
        var seen = 0
        for count in 1...8 {
            try await scene.hoard.shelve(10_000)
            guard let value = await shelves.next() else { break }
            #expect(value.count == count)
            seen = count
        }
        #expect(seen == 6)
        guard case .failed(let error) = shelf.outcome else {
            Issue.record("\(String(describing: shelf.outcome))")
            return
        }
        #expect(error.code == .internal)
        #expect(error.message.contains("Options.messageSize"), "\(error.message)")
        try await scene.expectUnharmed(bystander)
        await scene.end()
    }

    @Test("an oversized event, or version of a state with delivery `.every`, ends only its stream")
    func largeEvent() async throws {
        let scene = try await smallScene(byServer: true)
        let bystander = await scene.bystander()
        let pages = await scene.hoard.observePages()
        var texts = pages.makeAsyncIterator()
        #expect(await texts.next() == "")
        var parcels = await scene.hoard.observeParcels().makeAsyncIterator()
        #expect(await eventually { await scene.server.subscriberCount(of: "hoard", "observeParcels") == 1 })
        try await scene.hoard.send(1)
        #expect(try await parcels.next() == "x")
        try await scene.hoard.write(100_000)
        #expect(await texts.next() == nil)
        try await scene.hoard.send(100_000)
        let error = await #expect(throws: TrebuchetError.self) { _ = try await parcels.next() }
        for case .failed(let error)? in [pages.outcome, error.map { .failed($0) }] {
            #expect(error.code == .internal)
            #expect(error.message.contains("ServerLimits.messages.outboundBytes"), "\(error.message)")
        }
        try await scene.expectUnharmed(bystander)
        await scene.end()
    }
}
