import Platform
import Trebuchet
import TrebuchetTesting

/// The faults of a seed with namespaces, in sequence.
struct NetworkPlan {
    /// A kind of fault, by which they are chosen with `--faults`.
    enum Kind: String, CaseIterable {
        case kill, stop, pause, cut, links, down, start, stall, restart, restore, scale, slow, failover, split, flush

        static let all = allCases.map(\.rawValue).joined(separator: ",")
        /// Faults for seeds with sentinels, whose primary may change at any time, and for seeds that lose all data.
        var fitsFailover: Bool { [.kill, .stop, .pause, .links, .failover].contains(self) }
        var fitsFlush: Bool { [.kill, .stop, .pause, .cut, .links, .flush].contains(self) }
        /// Faults that lose no data, for seeds with a restore.
        var fitsRestore: Bool { [.kill, .stop, .pause, .cut, .links, .down, .stall, .restart].contains(self) }
        /// Faults that occur at most once in a seed.
        var isOnce: Bool { [.flush, .split, .restore].contains(self) }
    }

    enum Fault {
        case kill(Int, Duration)
        case stop(Int, Duration)
        /// A node is suspended for longer than its leases.
        case pause(Int, Duration)
        /// Between a node and the engine.
        case cut(Int, Namespaces.Way, Duration)
        /// Between two nodes, which both reach the engine; until all is answered all the same.
        case links(Int, Int, Namespaces.Way, Duration)
        /// `kill -9` of the engine, and how long there is none.
        case down(Duration)
        /// The same, and a node is killed and restarted while there is no engine.
        case start(Int, Duration)
        /// Messages come for a node faster than it takes them, until the engine gives its connection up.
        case slow(Int, standsStill: Bool, Duration)
        case failover(Failover)
        /// Redis is stopped by SIGSTOP for about the duration of a lease; data sent to it is buffered.
        case stall(Duration)
        /// All nodes are stopped in order, then Redis; then all are started again.
        case restart
        /// A backup of the engine is made; after this time the nodes and the engine are stopped in order, and started again with the backup's data.
        case restore(Duration)
        /// All nodes but one are stopped in order, one after the other in this order, and started again.
        case scale([Int])
        /// The old primary and one sentinel are apart from the others, and nodes reach all of them.
        case split(sentinel: Int, Duration)
        /// `FLUSHALL`; the nodes are started again when they have said so.
        case flush

        /// For the sum in the end.
        var kind: String {
            switch self {
            case .kill: "kill"
            case .stop: "stop"
            case .pause: "pause"
            case .cut(_, let way, _): "cut \(way)"
            case .links(_, _, let way, _): "links \(way)"
            case .down: "down"
            case .start: "start"
            case .slow(_, let standsStill, _): standsStill ? "slow node" : "slow line"
            case .failover(let failover): "failover \(failover.loss)"
            case .stall: "stall"
            case .restart: "restart"
            case .restore: "restore"
            case .scale: "scale"
            case .split: "split"
            case .flush: "flush"
            }
        }
    }

    /// A primary that ends, or seems to have ended, while its messages to the replica are lost.
    struct Failover {
        enum Loss: String, CaseIterable {
            /// `kill -9`
            case killed
            /// Sentinels and the replica do not reach it; nodes do.
            case separatePrimary
            /// Nobody does.
            case alone
        }

        let loss: Loss
        /// The direction in which messages between primary and replica are lost, and the time before the failover.
        let way: Namespaces.Way
        let lead: Duration
        /// From when another one is the primary until this one is back.
        let absence: Duration
        /// Whether a killed primary restarts as a primary instead of a replica.
        let isUnaware: Bool
        /// A node is killed while nothing is replicated, so that slots change their owners.
        let killed: Int?
    }

    let faults: [(share: Double, fault: Fault)]
    let durability: GameDurability
    /// Whether nodes have direct links.
    let isLinked: Bool
    /// Whether acknowledged calls may be lost.
    var mayLose: Bool { strictness.mayLose }
    let hasSentinels: Bool
    /// Whether Redis has a small output buffer for slow subscribers.
    let overflows: Bool
    /// The losses that clients must tolerate.
    let strictness: Strictness

    /// - Parameter isServed: whether nodes are `trebuchet serve`, whose leases last 5 s instead of 2 s, with durability `.engine`.
    init(seed: UInt64, nodes: Int, kinds: [Kind], isServed: Bool) {
        var random = RandomSource(seed: seed &* 15_485_863)
        let rare: [Kind] = [.flush, .failover, .split, .slow, .scale, .restore]
        let common = kinds.filter { !rare.contains($0) }
        var theme: Kind?
        let themes = kinds.filter(rare.contains)
        if !themes.isEmpty, common.isEmpty || Int.random(in: 0..<2, using: &random) == 0 {
            theme = themes.randomElement(using: &random)
        }
        hasSentinels = theme == .failover || theme == .split
        overflows = theme == .slow
        durability = hasSentinels && Bool.random(using: &random) && !isServed ? .replicated : .engine
        strictness =
            switch theme {
            case .scale: .ordered
            case .restore: .restored
            case .flush: .mayLose
            default: hasSentinels && durability == .engine ? .mayLose : .usual
            }
        let fitting = common.filter { kind in
            switch theme {
            case .failover, .split: kind.fitsFailover
            case .scale: false
            case .flush: kind.fitsFlush
            case .restore: kind.fitsRestore
            case .slow: kind != .links
            default: true
            }
        }
        let count = theme == .scale ? 1 : Int.random(in: 2...4, using: &random)
        var isLinked = theme != .slow && Bool.random(using: &random)
        var faults: [(Double, Fault)] = []
        for number in 0..<count {
            var kind = fitting.randomElement(using: &random) ?? theme ?? .kill
            let isOnce = theme?.isOnce == true
            if let theme, number == 0 || !isOnce && Bool.random(using: &random) { kind = theme }
            if isOnce, number > 0, kind == theme { continue }
            if kind == .links { isLinked = true }
            let share = Double.random(in: 0.05...0.9, using: &random)
            faults.append((share, Self.fault(kind, nodes: nodes, isServed, &random)))
        }
        self.isLinked = isLinked
        self.faults = faults.sorted { $0.0 < $1.0 }.map { (share: $0.0, fault: $0.1) }
    }

    private static func fault(_ kind: Kind, nodes: Int, _ isServed: Bool, _ random: inout RandomSource) -> Fault {
        func time(_ range: ClosedRange<Int>) -> Duration { .milliseconds(Int.random(in: range, using: &random)) }
        let node = Int.random(in: 0..<nodes, using: &random)
        let way = Namespaces.Way.allCases.randomElement(using: &random) ?? .both
        switch kind {
        case .kill: return .kill(node, time(0...400))
        case .stop: return .stop(node, time(0...400))
        case .pause: return .pause(node, time(isServed ? 5_200...8_000 : 2_200...5_000))
        case .cut: return .cut(node, way, time(200...(isServed ? 12_000 : 7_000)))
        case .links:
            return .links(node, (node + Int.random(in: 1..<nodes, using: &random)) % nodes, way, time(0...2_000))
        case .down: return .down(time(200...6_000))
        case .start: return .start(node, time(500...4_000))
        case .slow: return .slow(node, standsStill: Bool.random(using: &random), time(800...4_000))
        case .failover:
            return .failover(
                Failover(
                    loss: Failover.Loss.allCases.randomElement(using: &random) ?? .killed, way: way,
                    lead: time(0...1_500), absence: time(0...3_000), isUnaware: Bool.random(using: &random),
                    killed: Int.random(in: 0..<3, using: &random) == 0 ? node : nil))
        case .stall:
            // Half of them end while Redis still takes writes for a lease that its owner holds to be over.
            let (edge, any) = isServed ? (3_000...4_900, 2_500...8_000) : (1_200...1_950, 1_200...4_500)
            return .stall(time(Bool.random(using: &random) ? edge : any))
        case .restart: return .restart
        case .restore: return .restore(time(300...4_000))
        case .scale:
            let stays = Int.random(in: 0..<nodes, using: &random)
            return .scale((0..<nodes).filter { $0 != stays }.shuffled(using: &random))
        case .split: return .split(sentinel: Int.random(in: 0..<3, using: &random), time(8_000...12_000))
        case .flush: return .flush
        }
    }
}

/// When a write counts as done at the engine.
enum GameDurability: String {
    case engine
    /// One replica has it.
    case replicated
}
