/// What holds a chain together: it keeps the stream above alive, and ends the delivery when it is released.
@usableFromInline
final class Attachment: Sendable {
    private let end: @Sendable () -> Void

    /// Not yet attached: that is the outlet's part, once this exists.
    init<S: Stream>(_ inlet: Inlet<S.Value>, to stream: S) {
        end = {
            inlet.close()
            stream.outlet.detach(inlet)
            inlet.destination?.leave(stream.outlet)
        }
    }

    /// Something else that has to be undone with the chain.
    init(_ end: @escaping @Sendable () -> Void) { self.end = end }

    deinit { end() }
}
