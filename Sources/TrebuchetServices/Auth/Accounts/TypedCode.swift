/// A magic code as a user has typed or pasted it.
enum TypedCode {
    /// In bytes; longer text is none.
    private static let longest = 64

    /// The digits of a code, in ASCII: without white space, dashes and invisible characters, which mails and keyboards add, and with the
    /// digits of other scripts and widths read as digits. Other characters stay, and make the code a wrong one.
    static func normalized(_ text: String) -> String {
        guard text.utf8.count <= longest else { return text }
        var code = ""
        for scalar in text.unicodeScalars {
            if scalar.isSpacing { continue }
            if scalar.properties.numericType == .decimal, let digit = scalar.properties.numericValue {
                code += String(Int(digit))
            } else {
                code.unicodeScalars.append(scalar)
            }
        }
        return code
    }
}

extension Unicode.Scalar {
    /// A Boolean value that indicates whether it separates digits, or is invisible.
    fileprivate var isSpacing: Bool {
        switch properties.generalCategory {
        case .dashPunctuation, .format: true
        // The minus sign.
        case .mathSymbol: value == 0x2212
        default: properties.isWhitespace
        }
    }

    /// A Boolean value that indicates whether it is a space of any width, or is invisible. The end of a line is neither.
    var isBlank: Bool {
        switch properties.generalCategory {
        case .spaceSeparator, .format: true
        default: value == 0x09
        }
    }
}
