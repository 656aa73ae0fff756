/// The objects and arrays of a canonical text, found in one pass, so that code which visits nested values need not look for the
/// end of each at each level.
struct JSONOutline {
    struct Container {
        /// The number of elements or members.
        var count = 0
        /// The index behind the closing bracket.
        var end = 0
        /// The number of the next container that is not inside.
        var next = 0
    }

    /// In the order of their opening brackets.
    private(set) var containers: [Container] = []

    init(_ text: UnsafeRawBufferPointer) {
        var open: [Int] = []
        var at = 0
        while at < text.count {
            switch text[at] {
            case UInt8(ascii: "\""):
                at = CanonicalJSON.endOfString(at, text)
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                open.append(containers.count)
                let next = text[at + 1]
                let isEmpty = next == UInt8(ascii: "}") || next == UInt8(ascii: "]")
                containers.append(Container(count: isEmpty ? 0 : 1))
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                let closed = open.removeLast()
                (containers[closed].end, containers[closed].next) = (at + 1, containers.count)
            case UInt8(ascii: ","): if let inner = open.last { containers[inner].count += 1 }
            default: break
            }
            at += 1
        }
    }

    /// Returns the index behind a value, and the number of the next container behind it.
    ///
    /// - Parameter container: the number of the next container at or behind the value.
    func end(ofValueAt at: Int, _ text: UnsafeRawBufferPointer, container: Int) -> (end: Int, container: Int) {
        if text[at] == UInt8(ascii: "{") || text[at] == UInt8(ascii: "[") {
            return (containers[container].end, containers[container].next)
        }
        var scan = CanonicalJSON.Scan()
        return (scan.end(ofValueAt: at, text), container)
    }
}
