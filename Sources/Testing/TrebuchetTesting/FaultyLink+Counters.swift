extension FaultyLink {
    /// The counters of a link.
    public struct Counters: Hashable, Sendable {
        /// Connections that clients have opened.
        public internal(set) var accepted = 0
        /// Connections whose server could not be reached; the client's side was reset.
        public internal(set) var failedConnects = 0
        /// Connections that were cut in order: by the schedule and by `cutAll`.
        public internal(set) var orderlyCloses = 0
        /// Connections that were cut with a reset.
        public internal(set) var resets = 0
        /// Connections that were cut only for the client, and stayed open at the server.
        public internal(set) var halfOpens = 0
        /// Connections that were cut for the client, while the server got the rest later.
        public internal(set) var lateDeliveries = 0
        /// Connections that were cut and are still open at the server.
        public internal(set) var leftOpen = 0
        /// Stalls of one direction of a connection, by the schedule.
        public internal(set) var stalls = 0
        /// Bytes forwarded to the server.
        public internal(set) var bytesToServer = 0
        /// Bytes forwarded to clients.
        public internal(set) var bytesToClient = 0
        /// Descriptors that the link holds: two for its port, and one for each side of a connection.
        public internal(set) var openSockets = 0

        mutating func recordCut(_ cut: Cut) {
            switch cut {
            case .inOrder: orderlyCloses += 1
            case .reset: resets += 1
            case .halfOpen: halfOpens += 1
            case .late: lateDeliveries += 1
            }
        }

        mutating func recordBytes(_ bytes: Int, _ direction: FaultSchedule.Direction) {
            switch direction {
            case .toServer: bytesToServer += bytes
            case .toClient: bytesToClient += bytes
            }
        }
    }
}
