/// An array, an object or another value that is being written.
struct JSONFrame {
    enum Kind: UInt8 {
        /// Nothing of it is written yet, so that it may become either of the others.
        case empty
        case object, array
        /// A value that is neither.
        case single
    }

    var kind: Kind
    /// Made to write one value with, so that it ends with that. Others, nested containers and encoders for superclasses, live as
    /// long as what they stand in.
    let isScope: Bool
    /// Which place means this frame: no two ever have the same number. 0 when what they write goes elsewhere.
    var serial: UInt64
    /// Members or elements that it has.
    var count: Int
    /// Its first name in the writer's list of names.
    let firstName: Int
    /// How many arrays and objects it stands in, itself included.
    var level: Int
}

/// A name of a member of an object that is being written.
struct WrittenName {
    let hash: UInt32
    /// Where in the text its quote is.
    let offset: UInt32
}

/// A nested container that its parent has been written to behind, which ends it, and which may be written to again as long as its
/// parent may.
struct PausedFrame {
    let serial: UInt64
    let kind: JSONFrame.Kind
    let count: Int
    let level: Int
    /// What it stands in, and where: at that index of it, or behind the name at that offset of the text.
    let parent: UInt64
    let place: Int
    let isNamed: Bool
    /// Where in the text it ends.
    let end: Int
    /// What was written to it since.
    var rest: JSONWriter?
}

/// A step to a value within another one.
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
