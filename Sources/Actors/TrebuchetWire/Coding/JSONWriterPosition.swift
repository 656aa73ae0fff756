/// A position in the output of a `JSONWriter`. It can outlive the value that is written there; later output to it is discarded.
///
/// It has three words, so that it fits in an existential container.
struct JSONWriterPosition {
    let writer: JSONWriter
    let depth: Int
    let serial: UInt64

    /// Returns the writer for this position, with this position as its top frame.
    @inline(__always)
    func resumed(_ kind: JSONFrame.Kind) -> JSONWriter {
        if writer.top == depth, writer.frames[depth].serial == serial { return writer }
        return writer.resume(depth, serial) ?? .discarding(kind)
    }

    /// Starts an array or an object here, or continues the existing one.
    func opened(_ kind: JSONFrame.Kind) -> JSONWriterPosition {
        let writer = resumed(.empty)
        let frame = writer.frames[writer.top]
        if frame.kind == .empty {
            writer.open(kind)
        } else if frame.kind != kind, kind != .object || !writer.reopen() {
            writer.failure = writer.failure ?? refusal("another value was already encoded at the same position")
            let lost = JSONWriter.discarding(kind)
            return JSONWriterPosition(writer: lost, depth: 0, serial: lost.frames[0].serial)
        }
        return JSONWriterPosition(writer: writer, depth: writer.top, serial: frame.serial)
    }

    /// Starts a nested value that lives as long as this position; its name or comma is written already.
    func nested(_ writer: JSONWriter, _ kind: JSONFrame.Kind) -> JSONWriterPosition {
        let position = writer.push(isScope: false)
        if kind != .empty { writer.open(kind) }
        return position
    }

    /// The number of members or elements.
    var count: Int { writer.count(depth, serial) }

    var codingPath: [any CodingKey] { writer.path(to: serial) ?? [] }

    func refusal(_ text: String) -> EncodingError {
        .invalidValue(Any?.none as Any, .init(codingPath: codingPath, debugDescription: text))
    }
}
