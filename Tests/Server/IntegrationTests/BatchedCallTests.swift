import Dispatch
import TestSupport
import Testing
import TrebuchetTesting

@testable import Trebuchet

/// Records calls, and blocks its reactor for as long as a test wants.
@Trebuchet
distributed actor CombinedCallActor {
    @StreamedEvents(buffer: 64) var rings: Int
    private let journal: Journal
    private let opening: DispatchSemaphore

    init(journal: Journal, opening: DispatchSemaphore, actorSystem: TrebuchetActorSystem) {
        (self.journal, self.opening) = (journal, opening)
        self.actorSystem = actorSystem
    }

    distributed func thread() -> String { Threads.name }
    distributed func hold() {
        journal.record("held")
        opening.wait()
    }
    distributed func note(_ text: String) { journal.record(text) }
    distributed func noteLater(_ text: String) async { journal.record(text) }
    distributed func ring(_ number: Int) { $rings.send(number) }
    distributed func sum(_ first: Int, _ second: Int, _ third: Int) -> Int { first + second + third }
    distributed func fail() throws { throw TrebuchetError(.unauthorized, "not you") }
    distributed func repeated(_ count: Int) -> String { String(repeating: "x", count: count) }
}

/// Calls of methods that do not suspend, to an actor of another reactor: they are sent together, and answered together.
@Suite(.timeLimit(.minutes(5))) struct BatchedCallTests {
    private struct Scene {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2)
        let journal = Journal()
        let opening = DispatchSemaphore(value: 0)
        /// The name of the gate on the second reactor.
        let far: String
        /// The name of the gate on the first reactor.
        let near: String

        init() async throws {
            for name in ["a", "b"] {
                await server.expose(
                    CombinedCallActor(journal: journal, opening: opening, actorSystem: server.actorSystem), as: name)
            }
            try await server.start()
            let peer = try await RawPeer.connect(#require(server.address))
            peer.invoke("1", "a", "thread()")
            let isFar = await peer.nextText()?.contains(server.shards[1].reactor.name) == true
            (far, near) = isFar ? ("a", "b") : ("b", "a")
            peer.close()
        }

        func peer(onReactor index: UInt64 = 0) async throws -> RawPeer {
            while true {
                let peer = try await RawPeer.connect(#require(server.address))
                if peer.reactorIndex == index { return peer }
                peer.close()
            }
        }

        /// Blocks the far gate's reactor until `opening` is signalled.
        func hold() async throws -> RawPeer {
            let peer = try await peer(onReactor: 1)
            peer.invoke("h", far, "hold()")
            await journal.wait(for: "held")
            return peer
        }

        func end() async { await server.shutdown(drain: .zero) }
    }

    private func error(_ peer: RawPeer) async throws -> String? { try await peer.next()?.payload.error?.code }

    @Test("each call has its response, in order, whatever its arguments and result")
    func answers() async throws {
        let scene = try await Scene()
        let peer = try await scene.peer()
        let far = scene.far
        await peer.together {
            for number in 0..<200 {
                peer.invoke("\(number)", far, "sum(_:_:_:)", "[\(number),1,2]")
                peer.invoke("v\(number)", far, "note(_:)", "[\"\(number)\"]")
                peer.invoke("f\(number)", far, "fail()")
                peer.invoke("a\(number)", far, "note(_:)", "[true]")
                peer.invoke("t\(number)", far, "thread()")
            }
        }
        for number in 0..<200 {
            let sum = try #require(await peer.next()).payload
            #expect(sum.callID == "\(number)" && sum.result == number + 3 && sum.error == nil)
            let void = try #require(await peer.next()).payload
            #expect(void.callID == "v\(number)" && void.error == nil)
            let failed = try #require(await peer.next()).payload
            #expect(failed.callID == "f\(number)" && failed.error?.code == "unauthorized")
            let wrong = try #require(await peer.next()).payload
            #expect(wrong.callID == "a\(number)" && wrong.error?.code == "invalidArguments")
            #expect(await peer.nextText()?.contains(scene.server.shards[1].reactor.name) == true)
        }
        #expect(scene.journal.entries == (0..<200).map(String.init))
        await scene.end()
    }

    @Test("calls in transit share one timer and do not count as running")
    func lean() async throws {
        let scene = try await Scene()
        let peer = try await scene.peer()
        let holder = try await scene.hold()
        let shard = scene.server.shards[0]
        let far = scene.far
        await peer.together { for number in 0..<200 { peer.invoke("\(number)", far, "note(_:)", "[\"x\"]") } }
        peer.invoke("n", scene.near, "thread()")
        _ = await peer.nextText()
        let (timers, running, away) = await shard.reactor.perform {
            let connections = Array(shard.connections.values)
            // Not the timers of the reactor, which other tests use too.
            return (
                connections.filter { $0.load.inTransit == 200 }.compactMap(\.crossReactorCalls)
                    .flatMap(\.queues).count { $0.timer != nil },
                connections.reduce(0) { $0 + $1.running.count },
                connections.reduce(0) { $0 + $1.load.inTransit }
            )
        }
        #expect(timers == 1)
        #expect(running == 0)
        #expect(away == 200)
        scene.opening.signal()
        for number in 0..<200 { #expect(try await peer.next()?.payload.callID == "\(number)") }
        #expect(await shard.reactor.perform { shard.connections.values.allSatisfy { $0.load.inTransit == 0 } })
        holder.close()
        await scene.end()
    }

    @Test("a queued call has its deadline, and does not run after it")
    func deadline() async throws {
        let scene = try await Scene()
        let peer = try await scene.peer()
        let holder = try await scene.hold()
        let far = scene.far
        await peer.together {
            peer.invoke("0", far, "note(_:)", "[\"0\"]")
            peer.send(
                #"{"type":"invocation","payload":{"callID":"1","actorID":"\#(far)","targetIdentifier":"note(_:)","#
                    + #""arguments":["1"],"timeoutMilliseconds":50}}"#)
            peer.invoke("2", far, "note(_:)", "[\"2\"]")
        }
        let late = try #require(await peer.next()).payload
        #expect(late.callID == "1" && late.error?.code == "timeout")
        scene.opening.signal()
        #expect(try await peer.next()?.payload.callID == "0")
        #expect(try await peer.next()?.payload.callID == "2")
        #expect(scene.journal.entries == ["held", "0", "2"])
        holder.close()
        await scene.end()
    }

    @Test("a call cancelled in the queue is answered at once, and does not run")
    func cancelled() async throws {
        let scene = try await Scene()
        let peer = try await scene.peer()
        let holder = try await scene.hold()
        let far = scene.far
        await peer.together {
            for number in 0..<3 { peer.invoke("\(number)", far, "note(_:)", "[\"\(number)\"]") }
            peer.send(#"{"type":"cancel","payload":{"callID":"1"}}"#)
        }
        let answer = try #require(await peer.next()).payload
        #expect(answer.callID == "1" && answer.error?.code == "cancelled")
        scene.opening.signal()
        #expect(try await peer.next()?.payload.callID == "0")
        #expect(try await peer.next()?.payload.callID == "2")
        #expect(scene.journal.entries == ["held", "0", "2"])
        holder.close()
        await scene.end()
    }

    @Test("queued calls of a closed connection do not run")
    func ended() async throws {
        let scene = try await Scene()
        let peer = try await scene.peer()
        let holder = try await scene.hold()
        let far = scene.far
        await peer.together { for number in 0..<100 { peer.invoke("\(number)", far, "note(_:)", "[\"x\"]") } }
        peer.invoke("n", scene.near, "thread()")
        _ = await peer.nextText()
        let shard = scene.server.shards[0]
        peer.abort()
        #expect(await eventually { await shard.reactor.perform { shard.connections.isEmpty } })
        scene.opening.signal()
        let other = try await scene.peer()
        other.invoke("1", far, "note(_:)", "[\"after\"]")
        #expect(try await other.next()?.payload.callID == "1")
        #expect(scene.journal.entries == ["held", "after"])
        let counters = await shard.reactor.perform { shard.counts.sum }
        #expect(counters[.callsBegun] == counters[.callsEnded])
        other.close()
        holder.close()
        await scene.end()
    }

    @Test("batched calls run in order with those that suspend")
    func order() async throws {
        let scene = try await Scene()
        let peer = try await scene.peer()
        let far = scene.far
        await peer.together {
            for number in 0..<100 {
                peer.invoke("a\(number)", far, "noteLater(_:)", "[\"\(3 * number)\"]")
                peer.invoke("b\(number)", far, "note(_:)", "[\"\(3 * number + 1)\"]")
                peer.invoke("c\(number)", far, "note(_:)", "[\"\(3 * number + 2)\"]")
            }
        }
        await scene.journal.wait { $0.count == 300 }
        #expect(scene.journal.entries == (0..<300).map(String.init))
        var answers: Set<String> = []
        for _ in 0..<300 { answers.insert(try #require(await peer.next()?.payload.callID)) }
        #expect(answers.count == 300)
        await scene.end()
    }

    @Test("a stream requested between two calls starts before the second call runs")
    func stream() async throws {
        let scene = try await Scene()
        let far = scene.far
        for _ in 0..<50 {
            let peer = try await scene.peer()
            await peer.together {
                peer.invoke("1", far, "ring(_:)", "[1]")
                peer.invoke("s", far, "observeRings")
                peer.invoke("2", far, "ring(_:)", "[2]")
                peer.invoke("3", far, "ring(_:)", "[3]")
            }
            // It may start before the first call runs, which was sent earlier.
            var rings: [Int] = []
            while rings.last ?? 1 < 2, let text = await peer.nextText() {
                guard text.contains(#""type":"streamData""#) else { continue }
                rings.append((1...3).first { text.contains("\"data\":\($0)") } ?? 0)
            }
            #expect(rings.last == 2)
            peer.abort()
        }
        await scene.end()
    }

    @Test("responses over a megabyte wait until they are read, and all arrive")
    func unread() async throws {
        let scene = try await Scene()
        let peer = try await scene.peer()
        let far = scene.far
        await peer.pauseReading()
        await peer.together {
            for number in 0..<100 { peer.invoke("\(number)", far, "repeated(_:)", "[100000]") }
        }
        let other = try await scene.peer()
        other.invoke("1", far, "sum(_:_:_:)", "[1,2,3]")
        #expect(try await other.next()?.payload.result == 6)
        await peer.resumeReading()
        for number in 0..<100 {
            let text = try #require(await peer.nextText())
            #expect(text.utf8.count > 100_000 && text.contains(#""callID":"\#(number)""#))
        }
        await scene.end()
    }
}
