/// A stream as those below it see it, whatever its values are.
protocol Upstream: AnyObject, Sendable {
    /// The number of joins one above another between here and the sources.
    var height: Int { get }
    /// The streams right above.
    var upstreams: [any Upstream] { get }
    /// The waves that began here and have not come to their end.
    var wavesUnderWay: [Wave] { get }
    /// The wave has come to its end.
    func end(_ wave: Wave)
}

/// Something below a stream: where an inlet leads to.
protocol Downstream: AnyObject, Sendable {
    /// A stream has been put above.
    func hang(below upstream: any Upstream)
    /// That stream has gone; once for each time it was put there.
    func leave(_ upstream: any Upstream)
    /// The height may grow when something deeper is put above. Gives what has to be raised then, and to which height.
    func raise(to height: Int) -> [(any Downstream, Int)]
}

extension Downstream {
    /// Raises this, and all below it. Not a recursion: chains may be long.
    func raiseAll(to height: Int) {
        var places = raise(to: height)
        while let (place, height) = places.popLast() { places += place.raise(to: height) }
    }
}

/// What stands above several inputs of a join: the waves that began there reach it on several ways.
struct CommonUpstreams {
    private enum Reach: Equatable {
        case from(Int)
        case fromSeveral
    }

    private var reaches: [ObjectIdentifier: Reach] = [:]
    /// Those that are under way.
    private(set) var waves: [Wave] = []

    init(of inputs: [any Upstream]) {
        for (number, input) in inputs.enumerated() {
            var found: [(any Upstream, Reach)] = [(input, .from(number))]
            // Not a recursion: chains may be long.
            while let (stream, reach) = found.popLast() {
                let known = reaches[ObjectIdentifier(stream)]
                if known == .fromSeveral || known == reach { continue }
                let new = known == nil ? reach : .fromSeveral
                reaches[ObjectIdentifier(stream)] = new
                if new == .fromSeveral { waves += stream.wavesUnderWay }
                found += stream.upstreams.map { ($0, new) }
            }
        }
    }
}
