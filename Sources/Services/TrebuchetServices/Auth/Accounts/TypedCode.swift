/// A magic code as typed or pasted by a user.
enum TypedCode {
    /// In bytes; longer text is not a code.
    private static let longest = 64

    /// The number of digits of a code.
    static let digits = 6

    /// Returns whether a normalized text has the form of a code.
    static func isCode(_ text: String) -> Bool {
        text.utf8.count == digits && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }

    /// Returns the digits of a code in ASCII. White space, dashes and invisible characters are removed, because mails and
    /// keyboards add them. Digits of other scripts and widths are converted. Other characters remain and make the code wrong.
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
    /// A Boolean value that indicates whether the character separates digits or is invisible.
    fileprivate var isSpacing: Bool {
        switch properties.generalCategory {
        case .dashPunctuation, .format: true
        // The minus sign.
        case .mathSymbol: value == 0x2212
        default: properties.isWhitespace
        }
    }

    /// A Boolean value that indicates whether the character is a space of any width or invisible. Line ends are neither.
    var isBlank: Bool {
        switch properties.generalCategory {
        case .spaceSeparator, .format: true
        default: value == 0x09
        }
    }
}
