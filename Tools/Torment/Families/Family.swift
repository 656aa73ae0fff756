/// A kind of hostility. Each makes groups of courses from chance; `--only` and `--without` choose among them.
enum Family: String, CaseIterable, Sendable {
    /// Before the upgrade: heads that are cut, wrong or too large.
    case heads
    /// Requests for pages.
    case pages
    /// Frames that break RFC 6455, or almost.
    case frames
    /// Calls, cancels and their like: right, nearly right and wrong.
    case calls
    /// Names of actors and methods at their edges.
    case names
    /// JSON that is deep, wide or odd.
    case depths
    /// Messages and answers around the limits of size.
    case sizes
    /// Streams, filters and silent readers.
    case streams
    /// Actors that are made on demand, slowly, or not at all.
    case demand
    /// Calls of `@Idempotent` methods, and their repeats.
    case repeats
    /// Output that fills a buffer just so when a connection ends.
    case edges
    /// Clients that are right, and far ahead of their answers.
    case ahead
    /// Sign-in, rooms and collections.
    case services
    /// Values that decode, and that hardly anybody expects.
    case values
    /// A server whose standard output and standard error nobody reads, or nobody can.
    case output
    /// Much of one thing.
    case floods
    /// What TLS alone has; with `--tls`.
    case tls

    /// The courses of a group. They begin together.
    func courses(_ dice: inout Dice, isTLS: Bool) -> [Scenario] {
        var courses =
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
            case .values: ValueCourses.make(&dice)
            case .output: OutputCourses.make(&dice)
            case .floods: FloodScenarios.make(&dice)
            case .tls: PipeliningScenarios.make(&dice)
            }
        guard isTLS, self != .tls, self != .output else { return courses }
        let isSecure = dice.chance(60)
        for index in courses.indices where isSecure { courses[index].line = .tls }
        return courses
    }
}

/// What the families share.
enum ScenarioFragments {
    /// The end of a connection; nothing is the plainest.
    static func ending(_ dice: inout Dice) -> [Step] {
        dice.pick([
            [], [.reset], [.reset], [.close], [.finish], [.bye(1000)], [.bye(dice.int(0...5000))], [.leave], [.leave],
            [.listen(milliseconds: dice.int(1...200)), .reset], [.read(dice.int(1...5)), .reset],
            [.pause(milliseconds: dice.int(1...300)), .close],
        ])
    }

    /// Sends what `steps` write otherwise than at once: in one piece, in many, with a pause, or not to its end.
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

    /// 2 has no head of its own: it comes without subprotocol and says so in its messages.
    static func upgrade(_ version: Int) -> Step { .upgrade(version: version == 3 ? 3 : 1) }
}
