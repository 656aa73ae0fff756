/// An array, object or other value that is being written.
struct JSONFrame {
    /// The kind of a frame.
    enum Kind: UInt8 {
        /// Nothing is written yet, so the frame may become any other kind.
        case empty
        case object, array
        /// A value that is neither an array nor an object.
        case single
    }

    var kind: Kind
    /// Whether the frame was created to write one value, and ends with it. Other frames, of nested containers and superclass
    /// encoders, live as long as their parent.
    let isScope: Bool
    /// The identity of the frame, unique among all frames. 0 when output is redirected.
    var serial: UInt64
    /// The number of members or elements.
    var count: Int
    /// The index of its first name in the writer's list of names.
    let firstName: Int
    /// The nesting level, including this frame.
    var level: Int
}

/// A member name of an object that is being written.
struct WrittenName {
    let hash: UInt32
    /// The offset of its quote in the text.
    let offset: UInt32
}

/// A nested container that ended because its parent was written to. It can be written to again as long as the parent can.
struct PausedFrame {
    let serial: UInt64
    let kind: JSONFrame.Kind
    let count: Int
    let level: Int
    /// The parent and the position in it: an index, or the text offset of the name.
    let parent: UInt64
    let position: Int
    let isNamed: Bool
    /// The offset in the text at which it ends.
    let end: Int
    /// The writer of the later part.
    var rest: JSONWriter?
}

/// A coding key for one step of a path.
struct JSONStep: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(stringValue: String) {
        self.stringValue = stringValue
        intValue = nil
    }

    init(intValue: Int) {
        stringValue = String(intValue)
        self.intValue = intValue
    }

    init(index: Int) {
        stringValue = "Index \(index)"
        intValue = index
    }
}
