import Networking
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@Suite(.timeLimit(.minutes(5))) struct FaultyLinkTests {
    private static func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) } }

    /// Runs `body` with a link in front of an echo server, and expects that it leaves nothing behind.
    private func withLink(
        seed: UInt64 = 1, _ faults: FaultyLink.Faults = .none, body: (FaultyLink) async throws -> Void
    ) async throws {
        let port = try EchoPort()
        let link = try FaultyLink(to: port.listener.address, seed: seed, faults: faults)
        try await body(link)
        await link.close()
        #expect(link.counters.openSockets == 0)
        await port.listener.close()
    }

    @Test("bytes split at any position arrive complete and in order", arguments: 1...5 as ClosedRange<UInt64>)
    func splits(seed: UInt64) async throws {
        var faults = FaultyLink.Faults()
        faults.chunkBytes = 1...200
        faults.delay = .zero...(.milliseconds(2))
        try await withLink(seed: seed, faults) { link in
            let peer = try await BytePeer.connect(link.address)
            let sent = Self.bytes(20_000)
            await peer.send(sent)
            #expect(await eventually(within: .seconds(60)) { peer.now.received.count >= sent.count })
            #expect(peer.now.received == sent)
            // A busy machine may merge some pieces.
            #expect(peer.now.reads.count > sent.count / 1000)
            #expect(link.counters.bytesToServer == sent.count)
            #expect(link.counters.bytesToClient == sent.count)
        }
    }

    @Test("more data than the sockets hold passes a link that stalls")
    func backpressure() async throws {
        var faults = FaultyLink.Faults()
        faults.stallAfterBytes = 250_000...500_000
        faults.stallTime = .milliseconds(1)...(.milliseconds(5))
        try await withLink(faults) { link in
            let peer = try await BytePeer.connect(link.address)
            let sent = Self.bytes(4_000_000)
            await peer.send(sent)
            #expect(await eventually(within: .seconds(60)) { peer.now.received.count >= sent.count })
            #expect(peer.now.received == sent)
            #expect((14...34).contains(link.counters.stalls))
        }
    }

    @Test("each connection is cut after the scheduled number of bytes, and new ones work")
    func cuts() async throws {
        var faults = FaultyLink.Faults()
        faults.cutAfterBytes = 100...2_000
        faults.resets = 0.3
        faults.halfOpens = 0.3
        faults.halfOpenTime = .milliseconds(1)...(.milliseconds(20))
        let count = 40
        let schedule = FaultSchedule(seed: 7, faults: faults)
        try await withLink(seed: 7, faults) { link in
            let sent = Self.bytes(5_000)
            for number in 1...count {
                let peer = try await BytePeer.connect(link.address)
                await peer.send(sent)
                #expect(await eventually(within: .seconds(60)) { peer.now.isClosed })
                #expect(peer.now.received == Array(sent.prefix(peer.now.received.count)))
                var faultSequence = schedule.faultSequence(ofConnection: number, .toClient)
                guard case .carry(let bytes) = faultSequence.next(), case .cut(.inOrder) = faultSequence.next() else {
                    continue
                }
                #expect(peer.now.received.count == bytes, "connection \(number)")
            }
            #expect(await eventually(within: .seconds(60)) { link.counters.openSockets == 2 })
            let counters = link.counters
            #expect(counters.accepted == count)
            #expect(counters.orderlyCloses + counters.resets + counters.halfOpens == count)
            #expect([counters.orderlyCloses, counters.resets, counters.halfOpens].allSatisfy { $0 > 4 })
        }
    }

    @Test("changed faults apply to later connections; existing ones are unchanged")
    func laterFaults() async throws {
        var faults = FaultyLink.Faults()
        faults.cutAfterBytes = 100...100
        try await withLink { link in
            let sent = Self.bytes(5_000)
            let calm = try await BytePeer.connect(link.address)
            await calm.send(Self.bytes(1))
            #expect(await eventually(within: .seconds(60)) { calm.now.received.count == 1 })
            await link.setFaults(faults)
            let cut = try await BytePeer.connect(link.address)
            await cut.send(sent)
            #expect(await eventually(within: .seconds(60)) { cut.now.isClosed })
            await calm.send(sent)
            #expect(await eventually(within: .seconds(60)) { calm.now.received.count == 1 + sent.count })
            await link.setFaults(.none)
            let last = try await BytePeer.connect(link.address)
            await last.send(sent)
            #expect(await eventually(within: .seconds(60)) { last.now.received == sent })
        }
    }

    @Test("on the worst link, the received bytes are a prefix of the sent bytes", arguments: [3, 4, 5] as [UInt64])
    func harsh(seed: UInt64) async throws {
        try await withLink(seed: seed, .harsh) { link in
            let sent = Self.bytes(20_000)
            let peers = try await withThrowingTaskGroup(of: BytePeer.self) { group in
                for _ in 0..<30 {
                    group.addTask {
                        let peer = try await BytePeer.connect(link.address)
                        await peer.send(sent)
                        _ = await eventually(within: .seconds(60)) { peer.now.isClosed }
                        return peer
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(peers.allSatisfy { $0.now.isClosed })
            #expect(peers.allSatisfy { sent.starts(with: $0.now.received) })
            #expect(link.counters.stalls > 0)
        }
    }

    @Test("a released link ends its connections and stops listening")
    func release() async throws {
        let port = try EchoPort()
        var link: FaultyLink? = try FaultyLink(to: port.listener.address, seed: 1)
        let address = try #require(link?.address)
        let peer = try await BytePeer.connect(address)
        await peer.send([1])
        #expect(await eventually(within: .seconds(60)) { peer.now.received == [1] })
        link = nil
        #expect(await eventually(within: .seconds(60)) { peer.now.isClosed })
        #expect(
            await eventually(within: .seconds(60)) {
                let late = try? await BytePeer.connect(address)
                return late == nil
            })
        await port.listener.close()
    }

    @Test("all connections are cut at once, each in the requested way")
    func cutAll() async throws {
        try await withLink { link in
            for cut in [FaultyLink.Cut.inOrder, .reset, .halfOpen(.seconds(60))] {
                var peers: [BytePeer] = []
                for _ in 0..<3 {
                    let peer = try await BytePeer.connect(link.address)
                    await peer.send([1, 2, 3])
                    peers.append(peer)
                }
                #expect(await eventually(within: .seconds(60)) { peers.allSatisfy { $0.now.received == [1, 2, 3] } })
                await link.disconnectAll(cut)
                #expect(await eventually(within: .seconds(60)) { peers.allSatisfy(\.now.isClosed) })
                #expect(peers.allSatisfy { ($0.now.error == nil) == (cut == .inOrder) })
                // The server's sides of half-open connections.
                let open = cut == .halfOpen(.seconds(60)) ? 3 : 0
                #expect(await eventually(within: .seconds(60)) { link.counters.openSockets == 2 + open })
            }
        }
    }

    @Test("no bytes pass a stalled link, and all of them once it resumes")
    func stall() async throws {
        try await withLink { link in
            let peer = try await BytePeer.connect(link.address)
            await peer.send([1])
            #expect(await eventually(within: .seconds(60)) { peer.now.received == [1] })
            await link.pauseTraffic()
            await peer.send([2, 3])
            let later = try await BytePeer.connect(link.address)
            await later.send([4])
            #expect(await eventually(within: .seconds(60)) { link.counters.accepted == 2 })
            #expect(link.counters.bytesToServer == 1)
            await link.resumeTraffic()
            #expect(
                await eventually(within: .seconds(60)) { peer.now.received == [1, 2, 3] && later.now.received == [4] })
        }
    }

    @Test("connections are refused while the test wants it, and existing ones continue")
    func refusal() async throws {
        try await withLink { link in
            let peer = try await BytePeer.connect(link.address)
            for round in 1...3 as ClosedRange<UInt8> {
                try await link.refuseConnections {
                    let error = await #expect(throws: TransportError.self) { try await BytePeer.connect(link.address) }
                    #expect(error?.code == .refused)
                    await peer.send([round])
                    #expect(await eventually(within: .seconds(60)) { peer.now.received.last == round })
                }
                let next = try await BytePeer.connect(link.address)
                await next.send([9])
                #expect(await eventually(within: .seconds(60)) { next.now.received == [9] })
            }
        }
    }

    @Test("the end of one side reaches the other after its bytes")
    func ends() async throws {
        var faults = FaultyLink.Faults()
        faults.chunkBytes = 10...10
        try await withLink(faults) { link in
            let peer = try await BytePeer.connect(link.address)
            await peer.send(Self.bytes(1_000))
            await peer.finish()
            // The link has no connection before it has accepted one, too.
            #expect(
                await eventually(within: .seconds(60)) {
                    link.counters.bytesToServer == 1_000 && link.counters.openSockets == 2
                })
        }
    }

    @Test("a client whose server is gone sees its connection end")
    func noServer() async throws {
        // Reserved meanwhile: another test could soon listen on a free port.
        let port = PortReservation(SocketAddress(host: "127.0.0.1", port: 0, isIPv6: false))
        let link = try FaultyLink(to: SocketAddress(host: "127.0.0.1", port: port.port, isIPv6: false), seed: 1)
        // The reset may arrive during the connect.
        let peer = try? await BytePeer.connect(link.address)
        #expect(await eventually(within: .seconds(60)) { peer?.now.isClosed ?? true })
        #expect(await eventually { link.counters.failedConnects == 1 })
        await link.close()
        #expect(link.counters.openSockets == 0)
        withExtendedLifetime(port) {}
    }

    @Test("calls and streams pass a link that splits every message")
    func trebuchet() async throws {
        var faults = FaultyLink.Faults()
        faults.chunkBytes = 1...20
        try await withTestServer { server in
            await server.expose(SizedStateActor(actorSystem: server.actorSystem), as: "board")
        } body: { _, server in
            let link = try FaultyLink(to: #require(server.address), seed: 3, faults: faults)
            var options = TrebuchetClient.Options()
            // A handshake has a hundred pieces, and each waits for the reactor that all tests of the process share.
            options.connectTimeout = .seconds(40)
            let client = TrebuchetClient(
                transport: .webSocket(host: link.address.host, port: link.address.port), options: options)
            try await client.connect()
            let board = try client.resolve(SizedStateActor.self, id: "board")
            for count in 1...50 { #expect(try await board.add() == count) }
            await client.close()
            await link.close()
            #expect(link.counters.openSockets == 0)
        }
    }
}

@Suite struct FaultScheduleTests {
    private func steps(_ seed: UInt64, _ number: Int, _ direction: FaultSchedule.Direction) -> [FaultSequence.Step] {
        var faultSequence = FaultSchedule(seed: seed, faults: .harsh).faultSequence(ofConnection: number, direction)
        return (0..<500).map { _ in faultSequence.next() }
    }

    @Test("equal seeds give equal schedules; another seed, connection or direction gives another one")
    func sameSeed() {
        #expect(steps(1, 1, .toServer) == steps(1, 1, .toServer))
        #expect(steps(1, 1, .toServer) != steps(2, 1, .toServer))
        #expect(steps(1, 1, .toServer) != steps(1, 2, .toServer))
        #expect(steps(1, 1, .toServer) != steps(1, 1, .toClient))
    }

    /// Follows a schedule to its cut, or beyond its possible positions; nil when there is none.
    private func cut(_ faultSequence: FaultSequence, _ faults: FaultyLink.Faults) -> FaultyLink.Cut? {
        var faultSequence = faultSequence
        var offset = 0
        while offset <= faults.cutAfterBytes!.upperBound {
            switch faultSequence.next() {
            case .carry(let count):
                #expect(faults.chunkBytes!.contains(count))
                offset += count
            case .stall(let time): #expect(faults.stallTime.contains(time))
            case .cut(let cut):
                #expect(faults.cutAfterBytes!.contains(offset))
                #expect(faultSequence.next() == .cut(cut), "it is the last step")
                return cut
            }
        }
        return nil
    }

    @Test("a connection is cut once, in one direction, and all faults are within their bounds")
    func bounds() {
        let faults = FaultyLink.Faults.harsh
        let schedule = FaultSchedule(seed: 5, faults: faults)
        var cuts: [FaultyLink.Cut] = []
        var toServer = 0
        for number in 1...100 {
            let courses = FaultSchedule.Direction.allCases.map { schedule.faultSequence(ofConnection: number, $0) }
            #expect(courses.allSatisfy { faults.delay!.contains($0.delay) })
            let found = courses.map { cut($0, faults) }
            #expect(found.count { $0 != nil } == 1)
            if found[0] != nil { toServer += 1 }
            cuts += found.compactMap(\.self)
        }
        #expect((30...70).contains(toServer))
        #expect((15...45).contains(cuts.count { $0 == .inOrder }))
        #expect((25...55).contains(cuts.count { $0 == .reset }))
        for case .halfOpen(let time) in cuts { #expect(faults.halfOpenTime.contains(time)) }
    }

    @Test("without faults bytes are only forwarded")
    func none() {
        var faultSequence = FaultSchedule(seed: 9, faults: .none).faultSequence(ofConnection: 1, .toServer)
        #expect(faultSequence.delay == .zero)
        for _ in 0..<100 { if case .carry = faultSequence.next() { continue } else { Issue.record("not carried") } }
    }
}
