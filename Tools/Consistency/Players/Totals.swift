/// The totals of a run, for its last line.
struct Totals: Codable, Sendable {
    var values = 0
    var events = 0
    var eventBytes = 0
    var overflowsOfNewIncarnations = 0
    var overflowsOfReaders = 0
    var overflowsOfConnections = 0
    /// Stalls that ended with more than a MiB to catch up on.
    var stalls = 0
    var stalledBytes = 0
    /// Events of calls whose change was not written when the server was killed: their streams ended with `overflow`.
    var takenBack = 0
    var connections = 0
    var cuts = 0
    var shortStalls = 0

    mutating func add(_ other: Totals) {
        values += other.values
        events += other.events
        eventBytes += other.eventBytes
        overflowsOfNewIncarnations += other.overflowsOfNewIncarnations
        overflowsOfReaders += other.overflowsOfReaders
        overflowsOfConnections += other.overflowsOfConnections
        stalls += other.stalls
        stalledBytes += other.stalledBytes
        takenBack += other.takenBack
        connections += other.connections
        cuts += other.cuts
        shortStalls += other.shortStalls
    }
}
