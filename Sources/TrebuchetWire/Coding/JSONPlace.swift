/// A place in what a `JSONWriter` writes. It can outlive it: then what is written to it is lost, as nobody waits for it any more.
///
/// Three words, so that it lies within an existential.
struct JSONPlace {
    let writer: JSONWriter
    let depth: Int
    let serial: UInt64

    /// The writer that now writes there; its uppermost frame is this place.
    @inline(__always)
    func resumed(_ kind: JSONFrame.Kind) -> JSONWriter {
        if writer.top == depth, writer.frames[depth].serial == serial { return writer }
        return writer.resume(depth, serial) ?? .lost(kind)
    }

    /// Begins an array or an object here, or goes on with the one that is here.
    func opened(_ kind: JSONFrame.Kind) -> JSONPlace {
        let writer = resumed(.empty)
        let frame = writer.frames[writer.top]
        if frame.kind == .empty {
            writer.open(kind)
        } else if frame.kind != kind, kind != .object || !writer.reopen() {
            writer.failure = writer.failure ?? refusal("it has encoded something else before, in the same place")
            let lost = JSONWriter.lost(kind)
            return JSONPlace(writer: lost, depth: 0, serial: lost.frames[0].serial)
        }
        return JSONPlace(writer: writer, depth: writer.top, serial: frame.serial)
    }

    /// Begins what lives as long as this place; its name or its comma is written.
    func nested(_ writer: JSONWriter, _ kind: JSONFrame.Kind) -> JSONPlace {
        let place = writer.push(isScope: false)
        if kind != .empty { writer.open(kind) }
        return place
    }

    /// Members or elements that are there.
    var count: Int { writer.count(depth, serial) }

    var codingPath: [any CodingKey] { writer.path(to: serial) ?? [] }

    func refusal(_ text: String) -> EncodingError {
        .invalidValue(Any?.none as Any, .init(codingPath: codingPath, debugDescription: text))
    }
}
