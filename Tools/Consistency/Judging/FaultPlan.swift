import Platform
import TrebuchetTesting

/// The processes that are ended or suspended in a seed, with the times.
struct FaultPlan {
    enum Fault {
        /// `kill -9` of a server, and how long it is away.
        case kill(Int, Duration)
        /// The same, with a regular shutdown.
        case stop(Int, Duration)
        /// A node is suspended, for longer or shorter than its leases.
        case pause(Int, Duration)
        /// No data passes between a node and the engine; then its connections are cut, or continue with the delayed data.
        case cutOff(Int, Duration, isLost: Bool)
        /// `kill -9` of the engine, and how long there is none.
        case killEngine(Duration)
        /// `kill -9` of a crew; another one takes its place.
        case killPool(Int)
    }

    /// Each with the share of the calls that have ended by then, in this order.
    let faults: [(share: Double, fault: Fault)]

    /// - Parameter nodes: nil for one server without an engine.
    init(seed: UInt64, nodes: Int?) {
        var random = RandomSource(seed: seed &* 7_919)
        var faults: [(Double, Fault)] = []
        for _ in 0..<Int.random(in: nodes == nil ? 0...3 : 1...5, using: &random) {
            let absence = Duration.milliseconds(Int.random(in: 0...400, using: &random))
            let kind = Int.random(in: 0..<(nodes == nil ? 5 : 10), using: &random)
            let share = Double.random(in: 0.05...0.95, using: &random)
            guard let nodes else {
                faults.append((share, kind > 0 ? .kill(0, absence) : .stop(0, absence)))
                continue
            }
            let node = Int.random(in: 0..<nodes, using: &random)
            switch kind {
            case 0..<4: faults.append((share, .kill(node, absence)))
            case 4..<6: faults.append((share, .stop(node, absence)))
            case 6, 7: faults.append((share, .pause(node, absence * 12)))
            case 8: faults.append((share, .cutOff(node, absence * 12, isLost: Bool.random(using: &random))))
            default: faults.append((share, .killEngine(absence * 4)))
            }
        }
        if Int.random(in: 0..<3, using: &random) == 0 {
            let pool = Int.random(in: 0..<Judge.clientPools, using: &random)
            faults.append((Double.random(in: 0.1...0.8, using: &random), .killPool(pool)))
        }
        self.faults = faults.sorted { $0.0 < $1.0 }.map { (share: $0.0, fault: $0.1) }
    }
}
