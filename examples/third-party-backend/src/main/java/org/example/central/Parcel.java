package org.example.central;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * What one rank contributes to a collective, or gets from it.
 *
 * @param call the description of the call, which must be the same on all ranks
 * @param parts the data
 */
record Parcel(String call, List<byte[]> parts) {
  byte[] encode() throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    out.writeUTF(call);
    out.writeInt(parts.size());
    for (byte[] part : parts) {
      out.writeInt(part.length);
      out.write(part);
    }
    return bytes.toByteArray();
  }

  static Parcel decode(byte[] bytes) throws IOException {
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
    String call = in.readUTF();
    int count = in.readInt();
    List<byte[]> parts = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      int length = in.readInt();
      parts.add(in.readNBytes(length));
    }
    return new Parcel(call, parts);
  }
}
