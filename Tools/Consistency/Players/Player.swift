import Platform
import Synchronization
import Trebuchet
import TrebuchetTesting

/// One client: its link, its calls, and its streams.
final class Player: Sendable {
    static let callsPerPlayer = 100_000

    let number: Int
    let gameNumber: Int
    let links: FaultyClientLinks
    let gate = Gate()
    let strictness: Strictness
    private let seed: UInt64
    private let client: TrebuchetClient
    private let game: Game
    private let progress: ClientProgress
    /// Where the board was at the last answer.
    private let seen = Mutex(Receipt(life: 0, turn: 0))

    init(_ number: Int, seed: UInt64, ports: [Int], _ strictness: Strictness, _ progress: ClientProgress) throws {
        self.number = number
        self.strictness = strictness
        self.seed = seed &* 1_000_003 &+ UInt64(number)
        self.progress = progress
        gameNumber = number % GameServer.games
        var random = RandomSource(seed: self.seed)
        let faults = Self.faults(&random)
        let isOrdered = strictness == .ordered
        links = try FaultyClientLinks(
            to: FaultyClientLinks.known(to: isOrdered ? number % ports.count : number, of: ports), seed: self.seed,
            faults: isOrdered ? .none : faults)
        var options = Self.options
        if Int.random(in: 0..<3, using: &random) == 0 {
            options.pingInterval = .milliseconds(500)
            options.pongTimeout = .seconds(1)
        }
        client = TrebuchetClient(transports: FaultyClientLinks.transports(links.ports), options: options)
        game = try client.resolve(Game.self, id: GameServer.name(gameNumber))
    }

    static var options: TrebuchetClient.Options {
        var options = TrebuchetClient.Options()
        options.reconnect.initialDelay = .milliseconds(5)
        options.reconnect.maximumDelay = .milliseconds(100)
        options.reconnect.retriesFirstConnection = true
        // Longer than nodes wait for an engine, and than sentinels take to give a new primary its replica.
        options.callTimeout = .seconds(120)
        return options
    }

    /// Harsh where a cut leaves room for a whole state: else nothing would ever arrive.
    static func faults(_ random: inout RandomSource) -> FaultyLink.Faults {
        switch Int.random(in: 0..<10, using: &random) {
        case 0: return .none
        case 1..<5: return .mild
        default:
            var faults = FaultyLink.Faults()
            faults.cutAfterBytes = 40_000...400_000
            faults.resets = 0.25
            faults.halfOpens = 0.25
            faults.lateDeliveries = 0.25
            faults.stallAfterBytes = 16_384...131_072
            faults.stallTime = .milliseconds(1)...(.milliseconds(60))
            faults.delay = .zero...(.milliseconds(5))
            faults.chunkBytes = 64...8_192
            return faults
        }
    }

    func connect() async throws { try await client.connect() }

    func watcher(_ sent: SentBytes, isOfNodes: Bool) -> Watcher {
        Watcher(
            name: "player \(number)", number: gameNumber, game: game, gate: gate, progress: progress, sent: sent,
            isOfNodes: isOfNodes, strictness: strictness)
    }

    /// Makes its calls, two at a time, and looks in on the other game meanwhile.
    func play(calls: Int) async {
        let looks = (0..<2).map { number in
            Task {
                var onlooker = try ObservingClient(client, number, of: self, seed: seed)
                try await onlooker.run()
            }
        }
        defer { for look in looks { look.cancel() } }
        await withTaskGroup(of: Void.self) { group in
            for lane in 0..<2 {
                group.addTask { [self] in
                    var random = RandomSource(seed: seed ^ UInt64(lane + 1) << 32)
                    for index in stride(from: lane, to: calls, by: 2) {
                        // Nodes that come and go in order take their time.
                        let pause = strictness == .ordered ? 0...100 : 0...15
                        try? await Task.sleep(for: .milliseconds(Int.random(in: pause, using: &random)))
                        await call(number * Self.callsPerPlayer + index, "player \(number), lane \(lane)", &random)
                    }
                }
            }
        }
    }

    private func call(_ call: Int, _ lane: String, _ random: inout RandomSource) async {
        let padding = Int.random(in: 0...1_000, using: &random)
        let before = seen.withLock { $0 }
        progress.set(lane, "waits for call \(call)")
        defer { progress.set(lane, nil) }
        do {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<4: await put(call) { try await self.game.put(call, padding: padding) }
            case 4..<6:
                let milliseconds = Int.random(in: 0...20, using: &random)
                await put(call) { try await self.game.putSlowly(call, padding: padding, milliseconds: milliseconds) }
            case 6..<9: note(try await game.move(call, padding: padding), after: before)
            default: note(try await game.look(), after: before)
            }
        } catch let error as TrebuchetError
            where [.unknownOutcome, .unavailable].contains(error.code) && strictness != .ordered
        {
        } catch {
            Output.finding("player \(number): a plain call ended with \(error)")
        }
    }

    private func note(_ receipt: Receipt, after before: Receipt) {
        if receipt.life == before.life, receipt.turn < before.turn {
            Output.finding("player \(number): an answer of turn \(receipt.turn) after one of \(before.turn)")
        }
        seen.withLock { $0 = receipt }
    }

    /// A call of an `@Idempotent` method; the judge hears how it ended.
    private func put(_ call: Int, _ body: @Sendable () async throws -> Receipt) async {
        do {
            Output.printLine("acked \(call) \(try await body().turn)")
        } catch let error as TrebuchetError where error.code == .unknownOutcome && strictness != .ordered {
            Output.printLine("unknown \(call)")
        } catch let error as TrebuchetError where error.code == .unavailable && strictness != .ordered {
            Output.printLine("refused \(call) \(error.message)")
        } catch {
            Output.finding("player \(number): call \(call) ended with \(error)")
        }
    }

}
