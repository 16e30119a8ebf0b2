import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneId;

/** Of each line, a zone and a date, the second since the epoch at which the date begins there by java.time. */
class DayStarts {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] asked = line.split(" ");
            Instant start = LocalDate.parse(asked[1]).atStartOfDay(ZoneId.of(asked[0])).toInstant();
            System.out.println(start.getEpochSecond());
        }
    }
}
