/// A kind of hostility. Each makes groups of random scenarios; `--only` and `--without` select among them.
enum Family: String, CaseIterable, Sendable {
    /// Before the upgrade: truncated, invalid or oversized headers.
    case heads
    /// Requests for pages.
    case pages
    /// Frames that violate RFC 6455, or almost do.
    case frames
    /// Calls, cancellations and similar messages: valid, almost valid and invalid.
    case calls
    /// Unusual names of actors and methods.
    case names
    /// Deep, wide or unusual JSON.
    case depths
    /// Messages and responses around the size limits.
    case sizes
    /// Streams, filters and silent readers.
    case streams
    /// On-demand actors whose activation is slow or fails.
    case demand
    /// Calls of `@Idempotent` methods, and their repeats.
    case repeats
    /// Output that exactly fills a buffer when a connection ends.
    case edges
    /// Correct clients, far ahead of their responses.
    case ahead
    /// Sign-in, rooms and collections.
    case services
    /// Valid but unusual values.
    case values
    /// A server whose standard output and standard error are not read, or cannot be.
    case output
    /// Large amounts of one thing.
    case floods
    /// Hostility specific to TLS; with `--tls`.
    case tls

    /// The scenarios of a group, which start together.
    func scenarios(_ dice: inout Dice, isTLS: Bool) -> [Scenario] {
        var scenarios =
            switch self {
            case .heads: HTTPHeadScenarios.make(&dice)
            case .pages: PageScenarios.make(&dice)
            case .frames: FrameScenarios.make(&dice)
            case .calls: CallScenarios.make(&dice)
            case .names: NameScenarios.make(&dice)
            case .depths: MessageShapeScenarios.depths(&dice)
            case .sizes: MessageShapeScenarios.sizes(&dice)
            case .streams: StreamScenarios.make(&dice)
            case .demand: ActivationScenarios.make(&dice)
            case .repeats: RepeatedCallScenarios.make(&dice)
            case .edges: EdgeScenarios.make(&dice)
            case .ahead: AheadScenarios.make(&dice)
            case .services: ServiceScenarios.make(&dice)
            case .values: ValueScenarios.make(&dice)
            case .output: OutputScenarios.make(&dice)
            case .floods: FloodScenarios.make(&dice)
            case .tls: PipeliningScenarios.make(&dice)
            }
        guard isTLS, self != .tls, self != .output else { return scenarios }
        let isSecure = dice.chance(60)
        for index in scenarios.indices where isSecure { scenarios[index].line = .tls }
        return scenarios
    }
}

/// Parts shared by the families.
enum ScenarioFragments {
    /// The end of a connection; the simplest one has no steps.
    static func ending(_ dice: inout Dice) -> [Step] {
        dice.pick([
            [], [.reset], [.reset], [.close], [.finish], [.bye(1000)], [.bye(dice.int(0...5000))], [.leave], [.leave],
            [.listen(milliseconds: dice.int(1...200)), .reset], [.read(dice.int(1...5)), .reset],
            [.pause(milliseconds: dice.int(1...300)), .close],
        ])
    }

    /// Sends the output of `steps` in one piece, in many, with a pause, or truncated.
    static func disturbed(_ steps: [Step], _ dice: inout Dice) -> [Step] {
        switch dice.int(1...6) {
        case 1: [.hold] + steps + [.send]
        case 2: [.hold] + steps + [.pieces(dice.pick([1, 2, 7, 100, 1_000, 16_000]) + dice.int(0...3))]
        case 3: [.hold] + steps + [.cut(dice.size(upTo: 200_000))]
        case 4: [.hold] + steps + [.stall(dice.size(upTo: 10_000), milliseconds: dice.int(1...400))]
        default: steps
        }
    }

    static func version(_ dice: inout Dice) -> Int { dice.pick([3, 3, 3, 3, 2, 1]) }

    /// Version 2 has no subprotocol: its messages state the version.
    static func upgrade(_ version: Int) -> Step { .upgrade(version: version == 3 ? 3 : 1) }
}
