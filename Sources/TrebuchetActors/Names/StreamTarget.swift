package import TrebuchetWire

/// What a stream is of.
package struct StreamTarget: Hashable {
    package let actorID: String
    /// `observeState`
    package let name: String
    package var filter: StreamFilter?

    package init(actorID: String, name: String, filter: StreamFilter? = nil) {
        self.actorID = actorID
        self.name = name
        self.filter = filter
    }
}
