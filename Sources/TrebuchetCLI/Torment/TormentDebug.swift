import CEpoll
import Synchronization
package import Trebuchet

/// `debug`: what the server has under way, for `scripts/torment`.
@Trebuchet
package distributed actor TormentDebug {
    package struct Report: Codable, Sendable, Equatable {
        package var counters = ServerCounters()
        /// Methods and factories of the tormented actors that run now.
        package var tasks = 0
        /// The first of the actors that were made on demand, by their names.
        package var actors: [String] = []
    }

    private static let mostNames = 100

    private let server: TrebuchetServer

    package init(of server: TrebuchetServer, actorSystem: TrebuchetActorSystem) {
        self.server = server
        self.actorSystem = actorSystem
    }

    /// What there is beside this call and its timer.
    package distributed func report() async -> Report {
        var report = Report(counters: await server.counters(), tasks: Torment.underWay.load(ordering: .relaxed))
        report.counters.callsUnderWay -= 1
        report.counters.timers -= 1
        let actors = server.actorsOnDemand.sorted { $0.name < $1.name }.prefix(Self.mostNames)
        report.actors = actors.map { actor in
            guard let calls = actor.calls else { return "\(actor.name), let go" }
            return calls == 0 ? actor.name : "\(actor.name) with \(calls) calls"
        }
        return report
    }

    /// Gives memory that the allocator keeps back to the system.
    ///
    /// - Returns: the bytes that are in use.
    package distributed func trim() -> Int {
        _ = gnu_malloc_trim(0)
        let state = gnu_mallinfo()
        return Int(state.uordblks + state.hblkhd)
    }
}
