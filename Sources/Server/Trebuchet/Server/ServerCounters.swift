internal import Networking

/// The current operations and resources of a server, over all its reactors.
package struct ServerCounters: Codable, Sendable, Equatable {
    package var connections = 0
    /// The number of calls without a response.
    package var callsUnderWay = 0
    /// The number of these that wait on another reactor until their client reads earlier responses.
    package var callsBehindUnreadResponses = 0
    /// The number of calls and streams that wait for an activation.
    package var callsWaiting = 0
    package var streams = 0
    /// The number of observed states and event streams, per reactor and protocol version.
    package var broadcasters = 0
    /// The number of timers on the server's reactors, including those of clients in the same process.
    package var timers = 0
    /// The number of recorded responses of `@Idempotent` calls.
    package var recordedResponses = 0
    package var actorsOnDemand = 0
    /// The number of actors that are being activated or loaded.
    package var activations = 0

    package init() {}
}
