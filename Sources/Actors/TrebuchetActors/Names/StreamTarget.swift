package import TrebuchetWire

/// The identity of a stream: actor, property and filter.
package struct StreamTarget: Hashable {
    package let actorID: String
    /// The name on the wire, such as `observeState`.
    package let name: String
    package var filter: StreamFilter?
    /// The metadata of the request.
    package var metadata = CallMetadata()

    package init(actorID: String, name: String, filter: StreamFilter? = nil) {
        self.actorID = actorID
        self.name = name
        self.filter = filter
    }
}
