import CEpoll
import Synchronization
package import Trebuchet

/// `debug`: the current operations of the server, for `scripts/stress torment`.
@Trebuchet
package distributed actor AdversarialTestDebug {
    /// The counters of the server and of the tested actors.
    package struct Report: Codable, Sendable, Equatable {
        package var counters = ServerCounters()
        /// The number of running methods and factories of the tested actors.
        package var tasks = 0
        /// The first names of activated actors, sorted.
        package var actors: [String] = []
    }

    private static let maximumNames = 100

    private let server: TrebuchetServer

    package init(of server: TrebuchetServer, actorSystem: TrebuchetActorSystem) {
        self.server = server
        self.actorSystem = actorSystem
    }

    /// Returns the counters without this call and its timer.
    package distributed func report() async -> Report {
        var report = Report(
            counters: await server.counters(), tasks: AdversarialTestActors.underWay.load(ordering: .relaxed))
        report.counters.callsUnderWay -= 1
        report.counters.timers -= 1
        let actors = server.actorsOnDemand.sorted { $0.name < $1.name }.prefix(Self.maximumNames)
        report.actors = actors.map { actor in
            guard let calls = actor.calls else { return "\(actor.name), let go" }
            return calls == 0 ? actor.name : "\(actor.name) with \(calls) calls"
        }
        return report
    }

    /// Describes the calls in flight, this one included.
    package distributed func callsInFlight() async -> [String] { await server.callsInFlight() }

    /// Returns memory that the allocator retains to the system.
    ///
    /// - Returns: the number of bytes in use.
    package distributed func trim() -> Int {
        _ = gnu_malloc_trim(0)
        let state = gnu_mallinfo()
        return Int(state.uordblks + state.hblkhd)
    }
}
