/// The mangled names of an actor type's methods, by which clients of protocol versions 1 and 2 call them.
///
/// A mangled name consists of `$s`, the actor type, the method's name and labels, the types of its parameters and result, and `FTE`:
/// `$s4Demo8TodoListC03addB05titleySS_tYaKFTE` is `Demo.TodoList.addTodo(title:)`. The part before the types follows from the names
/// in the dispatch table, so a client's text is only compared with it. The call is then checked like any other.
///
/// Names with other characters than ASCII, and private actor types, have no mangled name here.
struct MangledNames: Sendable {
    private struct Method: Sendable {
        let name: String
        /// The part before the types.
        let start: [UInt8]
        /// True if the method has parameters, none of them with a label. The start ends in `y` then, the empty list of labels.
        let hasNoLabels: Bool
        /// The number of parameters.
        let count: Int
    }

    private let methods: [Method]

    init(of type: any Any.Type, methods: [String]) {
        guard let prefix = ManglingPrefix(of: type) else {
            self.methods = []
            return
        }
        self.methods = methods.compactMap { name in
            guard let open = name.firstIndex(of: "("), name.last == ")" else { return nil }
            let labels = name[name.index(after: open)...].dropLast().split(separator: ":").map(String.init)
            let hasNoLabels = !labels.isEmpty && labels.allSatisfy { $0 == "_" }
            var prefix = prefix
            guard prefix.append(String(name[..<open])) else { return nil }
            if hasNoLabels {
                prefix.append(operator: UInt8(ascii: "y"))
            } else {
                for label in labels {
                    if label == "_" {
                        prefix.append(operator: UInt8(ascii: "_"))
                    } else if !prefix.append(label) {
                        return nil
                    }
                }
            }
            return Method(name: name, start: prefix.text, hasNoLabels: hasNoLabels, count: labels.count)
        }
    }

    /// Returns the method with a mangled name; nil if there is none.
    ///
    /// - Parameter count: the number of arguments, which distinguishes `add(_:_:)` and `add(_:_:_:)`.
    func method(_ mangled: String, arguments count: Int) -> String? {
        var mangled = mangled
        return mangled.withUTF8 { text in
            guard text.suffix(3).elementsEqual("FTE".utf8) else { return nil }
            // `add` is the start of `add(to:)` too.
            let found = methods.filter { Self.matches($0, text) }
            let length = found.lazy.map(\.start.count).max()
            return found.first { method in
                guard method.start.count == length, method.count == count else { return false }
                var types = MangledTypes(text[method.start.count...])
                return types.mayHave(parameters: count)
            }?
            .name
        }
    }

    private static func matches(_ method: Method, _ text: UnsafeBufferPointer<UInt8>) -> Bool {
        guard text.starts(with: method.start) else { return false }
        let rest = text.dropFirst(method.start.count)
        if method.hasNoLabels { return !isVoid(rest) }
        // The result is empty, or this is the empty list of labels of another method.
        return method.count > 0 || rest.first != UInt8(ascii: "y") || isVoid(rest.dropFirst())
    }

    /// Returns whether the text is an empty parameter list, the effects and the end. Other parameters have a type here.
    private static func isVoid(_ rest: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        ["yFTE", "yKFTE", "yYaFTE", "yYaKFTE"].contains { rest.elementsEqual($0.utf8) }
    }
}

/// The types in a mangled name: those of the result and of the parameters, each after its parts.
private struct MangledTypes {
    private enum Element {
        case type
        /// The first element of a tuple.
        case firstElement
        /// The end of a list, which precedes the list; an empty tuple if nothing follows.
        case list
        /// A tuple of several elements, or of one with a label.
        case tuple(Int)
    }

    /// The maximum number of elements; longer types are not understood. A client chooses the text.
    private static let maximumElements = 1_024

    private var rest: Slice<UnsafeBufferPointer<UInt8>>
    private var elements: [Element] = []

    init(_ text: Slice<UnsafeBufferPointer<UInt8>>) { rest = text }

    /// Returns whether the types may be those of a method with this number of parameters. True for types that are not understood,
    /// such as generic ones.
    mutating func mayHave(parameters count: Int) -> Bool {
        guard readTypes() else { return true }
        guard elements.count >= 2, let parameters = elements.last else { return false }
        return switch parameters {
        case .type: count == 1
        case .list: count == 0
        case .tuple(let found): count == found
        case .firstElement: false
        }
    }

    /// Reads the types up to the effects of the method; returns false if they are not understood.
    private mutating func readTypes() -> Bool {
        while elements.count <= Self.maximumElements, let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "Y"), UInt8(ascii: "K"), UInt8(ascii: "F"):
                return true
            case UInt8(ascii: "y"): elements.append(.list)
            case UInt8(ascii: "_"):
                guard elements.popLast() != nil else { return false }
                elements.append(.firstElement)
            case UInt8(ascii: "t"):
                guard let count = removeLast(through: { if case .firstElement = $0 { true } else { false } })
                else { return false }
                elements.append(.tuple(count))
            case UInt8(ascii: "G"):
                guard let count = removeLast(through: { if case .list = $0 { true } else { false } }), count > 1,
                    elements.popLast() != nil
                else { return false }
                elements.append(.type)
            case UInt8(ascii: "V"), UInt8(ascii: "C"), UInt8(ascii: "O"):
                // The context and the name of a type.
                guard elements.count >= 2 else { return false }
                elements.removeLast(2)
                elements.append(.type)
            case UInt8(ascii: "S"): guard readStandardType() else { return false }
            case UInt8(ascii: "A"): guard readSubstitutions() else { return false }
            case UInt8(ascii: "1")...UInt8(ascii: "9"):
                guard skipText(startingWith: byte) else { return false }
                elements.append(.type)
            default: return false
            }
        }
        return false
    }

    /// Removes the elements from the last one that meets a condition on, and returns their number.
    private mutating func removeLast(through condition: (Element) -> Bool) -> Int? {
        guard let index = elements.lastIndex(where: condition) else { return nil }
        defer { elements.removeSubrange(index...) }
        return elements.count - index
    }

    /// Reads a number of at most three digits.
    private mutating func readNumber(startingWith digit: UInt8? = nil) -> Int? {
        var number = digit.map { Int($0) - 0x30 }
        while let byte = rest.first, (0x30...0x39).contains(byte) {
            number = (number ?? 0) * 10 + Int(byte) - 0x30
            guard number ?? 0 < 1_000 else { return nil }
            rest = rest.dropFirst()
        }
        return number ?? 1
    }

    private mutating func skipText(startingWith digit: UInt8) -> Bool {
        guard let count = readNumber(startingWith: digit), count <= rest.count else { return false }
        rest = rest.dropFirst(count)
        return true
    }

    /// Reads `Si` or `S2i`, types of the standard library, or `Sg`, which makes the last type optional.
    private mutating func readStandardType() -> Bool {
        guard let count = readNumber(), let letter = rest.popFirst() else { return false }
        if letter == UInt8(ascii: "g") { return !elements.isEmpty }
        guard "abdfhijnpqrsuxADJNOPRSTVWXY".utf8.contains(letter) else { return false }
        return appendTypes(count)
    }

    /// Appends types; returns false above the maximum number.
    private mutating func appendTypes(_ count: Int) -> Bool {
        guard elements.count + count <= Self.maximumElements else { return false }
        elements.append(contentsOf: repeatElement(.type, count: count))
        return true
    }

    /// Reads `AA`, `AbC` or `A2B`: identifiers and types that occurred before.
    private mutating func readSubstitutions() -> Bool {
        while true {
            guard let count = readNumber(), let letter = rest.popFirst() else { return false }
            guard appendTypes(count) else { return false }
            if (0x41...0x5A).contains(letter) { return true }
            guard (0x61...0x7A).contains(letter) else { return false }
        }
    }
}

/// The start of a mangled name, to which identifiers are appended. An identifier that occurred before is written as `A` and a
/// letter, its number among the identifiers and types; a word that occurred before as its number among the words, also a letter.
private struct ManglingPrefix {
    private(set) var text = Array("$s".utf8)
    private var words: [[UInt8]] = []
    /// The identifiers so far; nil for a type.
    private var substitutions: [String?] = []
    private var endsWithSubstitution = false
    /// The number of words and substitutions that a letter can name.
    private static let letters = 26

    /// Creates the start of the names of a type's members. Nil if the type's name does not show the identifiers of its mangled name.
    init?(of type: any Any.Type) {
        guard let mangled = _mangledTypeName(type) else { return nil }
        let whole = text + Array(mangled.utf8)
        let names = _typeName(type, qualified: true).prefix { $0 != "<" }.split(separator: ".")
        for (index, name) in names.enumerated() {
            guard append(String(name)), whole.starts(with: text) else { return nil }
            // A type is followed by its kind, unlike the module: a class or actor, an enum or a struct.
            guard index > 0 else { continue }
            guard text.count < whole.count, "COV".utf8.contains(whole[text.count]) else { return nil }
            append(operator: whole[text.count])
            substitutions.append(nil)
        }
        // The types of generic parameters follow.
        guard names.count > 1, text.count == whole.count || whole[text.count] == UInt8(ascii: "y") else { return nil }
    }

    mutating func append(operator letter: UInt8) {
        text.append(letter)
        endsWithSubstitution = false
    }

    /// Appends an identifier. Returns false for one that is not supported.
    mutating func append(_ identifier: String) -> Bool {
        let name = Array(identifier.utf8)
        guard let first = name.first, !Self.isDigit(first), name.allSatisfy({ $0 < 0x80 }) else { return false }
        if let number = substitutions.firstIndex(of: identifier) {
            // Swift merges successive substitutions.
            guard number < Self.letters, !endsWithSubstitution else { return false }
            text += [UInt8(ascii: "A"), UInt8(ascii: "A") + UInt8(number)]
            endsWithSubstitution = true
            return true
        }
        endsWithSubstitution = false
        substitutions.append(identifier)
        let known = knownWords(in: name)
        if !known.isEmpty { text.append(UInt8(ascii: "0")) }
        var copied = 0
        for (index, (start, word)) in known.enumerated() {
            appendText(name[copied..<start])
            copied = start + words[word].count
            let isLast = index == known.count - 1
            text.append((isLast ? UInt8(ascii: "A") : UInt8(ascii: "a")) + UInt8(word))
            if isLast, copied == name.count { text.append(UInt8(ascii: "0")) }
        }
        appendText(name[copied...])
        return true
    }

    /// Returns the words of an identifier that occurred before, with their offsets, and records the others.
    private mutating func knownWords(in name: [UInt8]) -> [(start: Int, word: Int)] {
        var known: [(start: Int, word: Int)] = []
        var start: Int?
        for (index, byte) in (name + [UInt8(ascii: "_")]).enumerated() {
            let isEnd = byte == UInt8(ascii: "_") || Self.isCapital(byte) && !Self.isCapital(name[max(index - 1, 0)])
            if let begin = start, isEnd {
                let word = Array(name[begin..<index])
                if let number = words.firstIndex(of: word) {
                    known.append((begin, number))
                } else if word.count >= 2, words.count < Self.letters {
                    words.append(word)
                }
                start = nil
            }
            if start == nil, byte != UInt8(ascii: "_"), !Self.isDigit(byte) { start = index }
        }
        return known
    }

    private mutating func appendText(_ part: ArraySlice<UInt8>) {
        guard !part.isEmpty else { return }
        text += Array(String(part.count).utf8) + part
    }

    private static func isCapital(_ byte: UInt8) -> Bool { (0x41...0x5A).contains(byte) }
    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
}
