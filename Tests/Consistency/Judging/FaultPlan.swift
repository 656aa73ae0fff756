import Platform
import TrebuchetTesting

/// When processes end in a seed, and which.
struct FaultPlan {
    enum Fault {
        /// `kill -9` of the server, and how long there is none.
        case kill(Duration)
        /// The same, asked to shut down.
        case stop(Duration)
        /// `kill -9` of a crew; another one takes its place.
        case killCrew(Int)
    }

    /// Each with the share of the calls that have ended by then, in this order.
    let faults: [(share: Double, fault: Fault)]

    init(seed: UInt64) {
        var random = RandomSource(seed: seed &* 7_919)
        var faults: [(Double, Fault)] = []
        for _ in 0..<Int.random(in: 0...3, using: &random) {
            let absence = Duration.milliseconds(Int.random(in: 0...400, using: &random))
            let isKill = Int.random(in: 0..<5, using: &random) > 0
            faults.append(
                (Double.random(in: 0.05...0.95, using: &random), isKill ? .kill(absence) : .stop(absence)))
        }
        if Int.random(in: 0..<3, using: &random) == 0 {
            let crew = Int.random(in: 0..<Judge.crews, using: &random)
            faults.append((Double.random(in: 0.1...0.8, using: &random), .killCrew(crew)))
        }
        self.faults = faults.sorted { $0.0 < $1.0 }.map { (share: $0.0, fault: $0.1) }
    }
}
