import Platform
import Trebuchet
import TrebuchetTesting

/// What fails in a seed with namespaces, one thing after the other.
struct NetworkPlan {
    /// A kind of fault, by which they are chosen with `--faults`.
    enum Kind: String, CaseIterable {
        case kill, stop, pause, cut, links, down, start, stall, restart, scale, slow, failover, split, flush

        static let all = allCases.map(\.rawValue).joined(separator: ",")
        /// What fits a seed with sentinels, whose primary may change at any moment, and one that loses all.
        var fitsFailover: Bool { [.kill, .stop, .pause, .links, .failover].contains(self) }
        var fitsFlush: Bool { [.kill, .stop, .pause, .cut, .links, .flush].contains(self) }
    }

    enum Fault {
        case kill(Int, Duration)
        case stop(Int, Duration)
        /// A node stands still for longer than its leases.
        case pause(Int, Duration)
        /// Between a node and the engine.
        case cut(Int, Namespaces.Way, Duration)
        /// Between two nodes, which both reach the engine; until all is answered all the same.
        case links(Int, Int, Namespaces.Way, Duration)
        /// `kill -9` of the engine, and how long there is none.
        case down(Duration)
        /// The same, and a node is killed and started while there is none.
        case start(Int, Duration)
        /// Messages come for a node faster than it takes them, until the engine gives its connection up.
        case slow(Int, standsStill: Bool, Duration)
        case failover(Failover)
        /// Redis is stopped by SIGSTOP for about as long as leases last; what was sent to it stays.
        case stall(Duration)
        /// All nodes are stopped in order, then Redis; then all are started again.
        case restart
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
            case .scale: "scale"
            case .split: "split"
            case .flush: "flush"
            }
        }
    }

    /// A primary that goes, or is held to be gone, while what it tells its replica does not arrive.
    struct Failover {
        enum Loss: String, CaseIterable {
            /// `kill -9`
            case killed
            /// Sentinels and the replica do not reach it; nodes do.
            case apart
            /// Nobody does.
            case alone
        }

        let loss: Loss
        /// Nothing arrives between primary and replica from so long before.
        let way: Namespaces.Way
        let lead: Duration
        /// From when another one is the primary until this one is back.
        let absence: Duration
        /// One that was killed comes back as the primary that it was, and not as a replica.
        let isUnaware: Bool
        /// A node is killed while nothing is replicated, so that slots change their owners.
        let killed: Int?
    }

    let faults: [(share: Double, fault: Fault)]
    let durability: GameDurability
    /// Whether nodes reach each other directly.
    let isLinked: Bool
    /// Whether what was acknowledged may be lost.
    let mayLose: Bool
    let hasSentinels: Bool
    /// Whether Redis keeps little for who does not take it.
    let overflows: Bool
    /// Whether nodes come and go in order and nothing else fails. Then no call may fail.
    let isOrdered: Bool

    init(seed: UInt64, nodes: Int, kinds: [Kind]) {
        var random = RandomSource(seed: seed &* 15_485_863)
        let rare: [Kind] = [.flush, .failover, .split, .slow, .scale]
        let common = kinds.filter { !rare.contains($0) }
        var theme: Kind?
        let themes = kinds.filter(rare.contains)
        if !themes.isEmpty, common.isEmpty || Int.random(in: 0..<2, using: &random) == 0 {
            theme = themes.randomElement(using: &random)
        }
        hasSentinels = theme == .failover || theme == .split
        overflows = theme == .slow
        isOrdered = theme == .scale
        durability = hasSentinels && Bool.random(using: &random) ? .replicated : .engine
        mayLose = theme == .flush || hasSentinels && durability == .engine
        let fitting = common.filter { kind in
            switch theme {
            case .failover, .split: kind.fitsFailover
            case .scale: false
            case .flush: kind.fitsFlush
            case .slow: kind != .links
            default: true
            }
        }
        let count = theme == .scale ? 1 : Int.random(in: 2...4, using: &random)
        var isLinked = theme != .slow && Bool.random(using: &random)
        var faults: [(Double, Fault)] = []
        for number in 0..<count {
            var kind = fitting.randomElement(using: &random) ?? theme ?? .kill
            // One flush, or split, is enough.
            let isOnce = theme == .flush || theme == .split
            if let theme, number == 0 || !isOnce && Bool.random(using: &random) { kind = theme }
            if isOnce, number > 0, kind == theme { continue }
            if kind == .links { isLinked = true }
            let share = Double.random(in: 0.05...0.9, using: &random)
            faults.append((share, Self.fault(kind, nodes: nodes, &random)))
        }
        self.isLinked = isLinked
        self.faults = faults.sorted { $0.0 < $1.0 }.map { (share: $0.0, fault: $0.1) }
    }

    private static func fault(_ kind: Kind, nodes: Int, _ random: inout RandomSource) -> Fault {
        func time(_ range: ClosedRange<Int>) -> Duration { .milliseconds(Int.random(in: range, using: &random)) }
        let node = Int.random(in: 0..<nodes, using: &random)
        let way = Namespaces.Way.allCases.randomElement(using: &random) ?? .both
        switch kind {
        case .kill: return .kill(node, time(0...400))
        case .stop: return .stop(node, time(0...400))
        case .pause: return .pause(node, time(2_200...5_000))
        case .cut: return .cut(node, way, time(200...7_000))
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
        case .stall: return .stall(time(1_200...4_500))
        case .restart: return .restart
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
