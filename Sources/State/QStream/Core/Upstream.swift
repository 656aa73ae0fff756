/// A stream of any value type, as seen by the streams below it.
protocol Upstream: AnyObject, Sendable {
    /// The maximum number of joins on a path from here to the sources.
    var height: Int { get }
    /// The streams directly above.
    var upstreams: [any Upstream] { get }
    /// The waves that began here and have not ended.
    var activeWaves: [Wave] { get }
    /// Removes a wave that has ended.
    func removeWave(_ wave: Wave)
}

/// An object below a stream: the destination of an inlet.
protocol Downstream: AnyObject, Sendable {
    /// Adds a stream above.
    func addUpstream(_ upstream: any Upstream)
    /// Removes a stream above. Called once for each time that it was added.
    func removeUpstream(_ upstream: any Upstream)
    /// Raises the height after a deeper stream was added above. Returns the objects to be raised then, and their
    /// heights.
    func raiseHeight(to height: Int) -> [(any Downstream, Int)]
}

extension Downstream {
    /// Raises this object, and all below it. Not recursive, because chains may be long.
    func raiseHeights(to height: Int) {
        var pending = raiseHeight(to: height)
        while let (object, height) = pending.popLast() { pending += object.raiseHeight(to: height) }
    }
}

/// The streams above several inputs of a join: waves that began there reach it on several paths.
struct CommonUpstreams {
    /// The inputs that a stream is above: one, or several.
    private enum Reach: Equatable {
        case from(Int)
        case fromSeveral
    }

    private var reaches: [ObjectIdentifier: Reach] = [:]
    /// The waves that have not ended.
    private(set) var waves: [Wave] = []

    init(of inputs: [any Upstream]) {
        for (number, input) in inputs.enumerated() {
            var found: [(any Upstream, Reach)] = [(input, .from(number))]
            // Not recursive, because chains may be long.
            while let (stream, reach) = found.popLast() {
                let known = reaches[ObjectIdentifier(stream)]
                if known == .fromSeveral || known == reach { continue }
                let new = known == nil ? reach : .fromSeveral
                reaches[ObjectIdentifier(stream)] = new
                if new == .fromSeveral { waves += stream.activeWaves }
                found += stream.upstreams.map { ($0, new) }
            }
        }
    }
}
