import Networking
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// The moves that a current server sends.
enum NewMove: String, Codable, Sendable { case left, right, jump }

struct NewLot: Codable, Sendable, Identifiable, Equatable {
    let id: Int
    var last: NewMove
}

@Trebuchet
distributed actor NewGame {
    @StreamedEvents(persisted: true) var moves: NewMove
    @StreamedState var lots: [NewLot] = [NewLot(id: 1, last: .left)]
    @StreamedState(delivery: .every()) var last: NewMove = .left
    @StreamedState var keyed: KeyedCollection<NewLot> = [NewLot(id: 1, last: .left), NewLot(id: 2, last: .left)]

    distributed func play(_ moves: [String]) {
        for move in moves.compactMap(NewMove.init) {
            $moves.send(move)
            last = move
        }
    }
    distributed func setLots(_ moves: [String]) {
        lots = moves.compactMap(NewMove.init).enumerated().map { NewLot(id: $0, last: $1) }
    }
    distributed func setKeyed(_ id: Int, _ move: String) {
        if let move = NewMove(rawValue: move) { keyed[id: id]?.last = move }
    }
}

/// The moves that an earlier app knows.
enum OldMove: String, Codable, Sendable { case left, right }

struct OldLot: Codable, Sendable, Identifiable, Equatable {
    let id: Int
    var last: OldMove
}

@Trebuchet
distributed actor OldGame {
    @StreamedEvents(persisted: true) var moves: OldMove
    @StreamedState var lots: [OldLot] = []
    @StreamedState(delivery: .every()) var last: OldMove = .left
    @StreamedState var keyed: KeyedCollection<OldLot> = []

    distributed func play(_ moves: [String]) { for move in moves.compactMap(OldMove.init) { $moves.send(move) } }
    distributed func setLots(_ moves: [String]) {}
    distributed func setKeyed(_ id: Int, _ move: String) {}
}

/// Old apps at new servers: an unknown value costs them only that value.
@Suite(.timeLimit(.minutes(5))) struct UndecodableTests {
    private final class Reports: Sendable {
        let values = Mutex<[UndecodableValue]>([])
    }

    private let reports = Reports()

    private var reported: [UndecodableValue] { reports.values.withLock { $0 } }

    private func withGame(
        _ link: TestLink = .webSocket, isolation: isolated (any Actor)? = #isolation,
        _ body: (OldGame, TrebuchetClient, TrebuchetServer) async throws -> Void
    ) async throws {
        var options = TrebuchetClient.Options()
        options.onUndecodable = { [reports] value in reports.values.withLock { $0.append(value) } }
        try await withTestServer(link: link, reactors: 1, options: options, store: MemoryStore()) { server in
            await server.expose(NewGame(actorSystem: server.actorSystem), as: "game")
        } body: { (client, server) async throws in
            try await body(try client.resolve(OldGame.self, id: "game"), client, server)
        }
    }

    // MARK: Events

    @Test(
        "an undecodable event is omitted and reported, and the bookmark advances past it",
        arguments: TestLink.allCases)
    func skipped(link: TestLink) async throws {
        try await withGame(link) { game, _, _ in
            let stream = await game.observeMoves()
            #expect(await eventually { stream.bookmark != nil })
            var moves = stream.makeAsyncIterator()
            try await game.play(["left", "jump", "right"])
            #expect(try await moves.next() == .left)
            let before = try #require(stream.bookmark)
            #expect(before.sequence == 1)
            #expect(try await moves.next() == .right)
            #expect(stream.bookmark?.sequence == 3)

            let report = try #require(reported.first)
            #expect(reported.count == 1)
            #expect(report.kind == .event && report.actor == "game" && report.stream == "observeMoves")
            #expect(report.bookmark == EventBookmark(epoch: before.epoch, sequence: 2) && report.count == 1)
            let text = report.error.message
            #expect(text.hasPrefix("event 2 of 'observeMoves' of actor 'game' cannot be decoded as OldMove"), "\(text)")
            #expect(text.contains(#""jump""#) && !text.contains("state"), "\(text)")
            #expect("\(report)".hasSuffix("; skipped, 1 of this stream so far"), "\(report)")

            // A restarted program continues, from before the event and from after it.
            let again = await game.observeMoves(since: before)
            var rest = again.makeAsyncIterator()
            #expect(try await rest.next() == .right)
            #expect(reported.map(\.count) == [1, 1])
            try await game.play(["jump", "jump"])
            // All iterators of a stream share its events.
            let waiting = Task {
                var rest = again.makeAsyncIterator()
                return try await rest.next()
            }
            #expect(await eventually { again.bookmark?.sequence == 5 })
            #expect(reported.suffix(2).map(\.count) == [2, 3])
            try await game.play(["left"])
            #expect(try await waiting.value == .left)
        }
    }

    @Test("with onUndecodable: .end, the stream ends at such an event, and the bookmark stays before it")
    func ends() async throws {
        try await withGame { game, _, _ in
            let stream = await game.observeMoves(onUndecodable: .end)
            #expect(await eventually { stream.bookmark != nil })
            var moves = stream.makeAsyncIterator()
            try await game.play(["left", "jump", "right"])
            #expect(try await moves.next() == .left)
            for _ in 0..<2 {
                let error = await #expect(throws: TrebuchetError.self) { try await moves.next() }
                #expect(error?.message.hasPrefix("event 2 of 'observeMoves' of actor 'game'") == true)
            }
            let place = try #require(stream.bookmark)
            #expect(place.sequence == 1)
            var same = await game.observeMoves(since: place, onUndecodable: .end).makeAsyncIterator()
            await #expect(throws: TrebuchetError.self) { try await same.next() }
            var rest = await game.observeMoves(since: place).makeAsyncIterator()
            #expect(try await rest.next() == .right)
        }
    }

    @Test("a local reader omits undecodable events of an earlier program, and the log reports it")
    func persisted() async throws {
        let log = Journal()
        let store = MemoryStore()
        func server() -> TrebuchetServer {
            TrebuchetServer(
                transport: .webSocket(port: 0), reactors: 1, store: store, log: ConsoleLog { log.record($0) })
        }
        let first = server()
        let new = NewGame(actorSystem: first.actorSystem)
        await first.expose(new, as: "game")
        try await first.start()
        try await new.play(["left", "jump", "right"])
        await first.shutdown(drain: .zero)

        let second = server()
        let old = OldGame(actorSystem: second.actorSystem)
        await second.expose(old, as: "game")
        try await second.start()
        let now = try #require(await old.observeMoves(since: nil).bookmark)
        var moves = await old.observeMoves(since: EventBookmark(epoch: now.epoch, sequence: 0)).makeAsyncIterator()
        #expect(try await moves.next() == .left)
        #expect(try await moves.next() == .right)
        await log.wait {
            $0.contains { $0.hasPrefix("event 2 of 'observeMoves' of actor '\(old.id.id)' cannot be decoded") }
        }
        await second.shutdown(drain: .zero)
    }

    // MARK: States

    @Test(
        "an undecodable version leaves the value before, and the next decodable one arrives",
        arguments: TestLink.allCases)
    func version(link: TestLink) async throws {
        try await withGame(link) { game, _, _ in
            let stream = await game.observeLots()
            do {
                var lots = stream.makeAsyncIterator()
                #expect(await lots.next() == [OldLot(id: 1, last: .left)])
            }
            #expect(stream.decodingError == nil)
            try await game.setLots(["left", "jump"])
            let next = Task {
                var lots = stream.makeAsyncIterator()
                return await lots.next()
            }
            #expect(await eventually { stream.decodingError != nil })
            let text = stream.decodingError?.message ?? ""
            #expect(text.hasPrefix("state 'observeLots' of actor 'game' cannot be decoded as Array<OldLot>"), "\(text)")
            #expect(text.contains("at 1.last") && text.contains("jump"), "\(text)")
            #expect(stream.outcome == nil)
            try await game.setLots(["right"])
            #expect(await next.value == [OldLot(id: 0, last: .right)])
            #expect(stream.decodingError == nil)
            #expect(reported.map(\.kind) == [.state] && reported.map(\.count) == [1])
            #expect(reported.first?.bookmark == nil)
        }
    }

    @Test("the first version may be undecodable, and several readers count it once")
    func first() async throws {
        try await withGame { game, client, _ in
            try await client.resolve(NewGame.self, id: "game").setLots(["jump"])
            let stream = await game.observeLots()
            let readers = (0..<3).map { _ in
                Task {
                    var lots = stream.makeAsyncIterator()
                    return await lots.next()
                }
            }
            #expect(await eventually { stream.decodingError != nil })
            try await game.setLots(["left"])
            for reader in readers { #expect(await reader.value == [OldLot(id: 0, last: .left)]) }
            #expect(reported.map(\.count) == [1])
        }
    }

    @Test("with delivery `.every`, all other versions arrive")
    func each() async throws {
        try await withGame { game, _, _ in
            var values = await game.observeLast().makeAsyncIterator()
            #expect(await values.next() == .left)
            try await game.play(["right", "jump", "left", "jump", "right"])
            for move in [OldMove.right, .left, .right] { #expect(await values.next() == move) }
            #expect(reported.map(\.count) == [1, 2])
        }
    }

    @Test("one undecodable element of a tracked collection is handled, in the first value and in a change")
    func element() async throws {
        try await withGame { game, client, _ in
            for isFirst in [false, true] {
                if isFirst { try await game.setKeyed(2, "jump") }
                let stream = await game.observeKeyed()
                if !isFirst {
                    var values = stream.makeAsyncIterator()
                    #expect(await values.next()?.map(\.last) == [.left, .left])
                    try await game.setKeyed(2, "jump")
                }
                let next = Task {
                    var values = stream.makeAsyncIterator()
                    return await values.next()
                }
                #expect(await eventually { stream.decodingError != nil })
                let text = stream.decodingError?.message ?? ""
                #expect(text.contains("state 'observeKeyed'") && text.contains("at 1.last"), "\(text)")
                try await game.setKeyed(2, "left")
                #expect(await next.value?.map(\.last) == [.left, .left])
                #expect(stream.outcome == nil && stream.decodingError == nil)
            }
            #expect(reported.map(\.count) == [1, 1])
        }
    }

    @Test("in a view the value stays, with the error until a decodable version arrives") @MainActor
    func observed() async throws {
        try await withGame { game, _, _ in
            let wrapper = ObservedActor(game, observe: \.observeLots)
            let observer = wrapper.projectedValue
            #expect(await eventually { observer.value == [OldLot(id: 1, last: .left)] })
            try await game.setLots(["jump"])
            #expect(await eventually { observer.error != nil })
            #expect(observer.error?.message.contains("'observeLots'") == true)
            #expect(observer.value == [OldLot(id: 1, last: .left)] && !observer.isConnecting)
            try await game.setLots(["right"])
            #expect(await eventually { observer.value == [OldLot(id: 0, last: .right)] && observer.error == nil })
        }
    }

    @Test("undecodable values of one stream are logged at exponentially growing intervals")
    func lines() {
        let counts = (1...1_000).filter { count in
            UndecodableValue(
                kind: .event, actor: "a", stream: "s", error: TrebuchetError(.internal, ""), count: count
            ).isLogged
        }
        #expect(counts == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
    }
}
