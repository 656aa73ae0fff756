/// A JSON value as a tree: the simple reference for the patch on bytes.
indirect enum JSONTree: Equatable {
    case scalar(String)
    case string(String)
    case array([JSONTree])
    case object([String: JSONTree])

    func text(_ style: inout TextStyle) -> String {
        switch self {
        case .scalar(let text): text
        case .string(let text): style.quoted(text)
        case .array(let elements):
            "[" + elements.map { style.space() + $0.text(&style) }.joined(separator: style.space() + ",") + "]"
        case .object(let members):
            "{"
                + style.order(members.keys.sorted()).map { name in
                    style.quoted(name) + style.space() + ":" + style.space() + members[name]!.text(&style)
                }.joined(separator: "," + style.space()) + "}"
        }
    }

    // MARK: Operations on a path of names and indices; nil for an invalid path

    func value(at path: ArraySlice<String>) -> JSONTree? {
        guard let token = path.first else { return self }
        switch self {
        case .array(let elements):
            return Self.index(token, elements.count).flatMap { elements[$0].value(at: path.dropFirst()) }
        case .object(let members): return members[token]?.value(at: path.dropFirst())
        default: return nil
        }
    }

    func adding(_ value: JSONTree, at path: ArraySlice<String>) -> JSONTree? {
        guard let token = path.first else { return value }
        if path.count > 1 { return replacing(token) { $0.adding(value, at: path.dropFirst()) } }
        switch self {
        case .array(var elements):
            guard let index = token == "-" ? elements.count : Self.index(token, elements.count + 1) else { return nil }
            elements.insert(value, at: index)
            return .array(elements)
        case .object(var members):
            members[token] = value
            return .object(members)
        default: return nil
        }
    }

    func removing(at path: ArraySlice<String>) -> JSONTree? {
        guard let token = path.first, value(at: path) != nil else { return nil }
        if path.count > 1 { return replacing(token) { $0.removing(at: path.dropFirst()) } }
        switch self {
        case .array(var elements):
            elements.remove(at: Int(token)!)
            return .array(elements)
        case .object(var members):
            members[token] = nil
            return .object(members)
        default: return nil
        }
    }

    private func replacing(_ token: String, _ change: (JSONTree) -> JSONTree?) -> JSONTree? {
        switch self {
        case .array(var elements):
            guard let index = Self.index(token, elements.count), let part = change(elements[index]) else { return nil }
            elements[index] = part
            return .array(elements)
        case .object(var members):
            guard let part = members[token].flatMap(change) else { return nil }
            members[token] = part
            return .object(members)
        default: return nil
        }
    }

    private static func index(_ token: String, _ count: Int) -> Int? {
        guard let index = Int(token), String(index) == token, (0..<count).contains(index) else { return nil }
        return index
    }
}

/// The notation of a text: plain, or with spaces, escapes and reordered members.
struct TextStyle {
    var random: RandomJSON?

    mutating func space() -> String {
        random?.pick(from: 6) == 0 ? [" ", "\n", "\t ", "\r"][random!.pick(from: 4)] : ""
    }

    mutating func order(_ names: [String]) -> [String] {
        random == nil || random!.pick(from: 3) > 0 ? names : names.shuffled(using: &random!)
    }

    mutating func quoted(_ text: String) -> String {
        let escapesAll = random?.pick(from: 8) == 0
        var out = "\""
        for character in text.unicodeScalars {
            if escapesAll || character.value < 0x20 || character == "\"" || character == "\\" {
                for unit in String(character).utf16 {
                    out +=
                        "\\u" + String(repeating: "0", count: 4 - String(unit, radix: 16).count)
                        + String(unit, radix: 16)
                }
            } else {
                out.unicodeScalars.append(character)
            }
        }
        return out + "\""
    }
}
